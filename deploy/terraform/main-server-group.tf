# For the main server: it has to carry this group.
resource "aws_security_group" "main" {
  name        = "${var.name}-main"
  description = "Main server of the fleet"
  vpc_id      = data.aws_vpc.fleet.id
  tags = {
    "crawlfleet:owner" = var.owner
    "crawlfleet:role"  = "main"
  }
}

resource "aws_vpc_security_group_ingress_rule" "main" {
  security_group_id            = aws_security_group.main.id
  referenced_security_group_id = aws_security_group.instance.id
  ip_protocol                  = "tcp"
  from_port                    = var.callback_port
  to_port                      = var.callback_port
}

# For runs without a load balancer.
resource "aws_vpc_security_group_ingress_rule" "direct" {
  security_group_id            = aws_security_group.instance.id
  referenced_security_group_id = aws_security_group.main.id
  ip_protocol                  = "tcp"
  from_port                    = var.api_port
  to_port                      = var.api_port
}

# if canary_port
# The pages of npm run canary.
resource "aws_vpc_security_group_ingress_rule" "canary" {
  security_group_id            = aws_security_group.main.id
  referenced_security_group_id = aws_security_group.instance.id
  ip_protocol                  = "tcp"
  from_port                    = var.canary_port
  to_port                      = var.canary_port
}

resource "aws_vpc_security_group_egress_rule" "main" {
  security_group_id = aws_security_group.main.id
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "-1"
}
