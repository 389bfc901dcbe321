# if first_subnet
data "aws_subnet" "first" {
  id = var.first_subnet
}

data "aws_vpc" "fleet" {
  id      = var.vpc
  default = var.default_vpc
}
