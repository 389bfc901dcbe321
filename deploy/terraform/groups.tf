resource "aws_security_group" "instance" {
  name        = "${var.name}-instance"
  description = "Instances of the fleet"
  vpc_id      = data.aws_vpc.fleet.id
  tags = {
    "crawlfleet:owner" = var.owner
    "crawlfleet:role"  = "instance"
  }
}

resource "aws_vpc_security_group_ingress_rule" "instance" {
  security_group_id            = aws_security_group.instance.id
  referenced_security_group_id = aws_security_group.balancer.id
  ip_protocol                  = "tcp"
  from_port                    = var.api_port
  to_port                      = var.api_port
}

resource "aws_vpc_security_group_egress_rule" "instance" {
  security_group_id = aws_security_group.instance.id
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "-1"
}

resource "aws_security_group" "balancer" {
  name        = "${var.name}-balancer"
  description = "Load balancers of the fleet"
  vpc_id      = data.aws_vpc.fleet.id
  tags = {
    "crawlfleet:owner" = var.owner
    "crawlfleet:role"  = "balancer"
  }
}

resource "aws_vpc_security_group_ingress_rule" "balancer" {
  security_group_id            = aws_security_group.balancer.id
  referenced_security_group_id = var.main_server_group
  cidr_ipv4                    = var.main_server_cidr
  ip_protocol                  = "tcp"
  from_port                    = var.balancer_port
  to_port                      = var.balancer_port
}

resource "aws_vpc_security_group_egress_rule" "balancer" {
  security_group_id = aws_security_group.balancer.id
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "-1"
}
