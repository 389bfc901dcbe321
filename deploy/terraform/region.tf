provider "aws" {
  alias  = "there"
  region = var.region
  # if tags
  default_tags {
    tags = var.tags
  }
}
