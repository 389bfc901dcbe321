# What an engineer would write for a fleet by hand: instances behind a load balancer, and a bucket.
terraform {
  required_providers { aws = { source = "hashicorp/aws" } }
}
variable "endpoint" { type = string }

provider "aws" {
  region                  = "ap-northeast-1"
  access_key              = "any"
  secret_key              = "any"
  s3_use_path_style       = true
  skip_metadata_api_check = true
  endpoints {
    ec2   = var.endpoint
    elbv2 = var.endpoint
    s3    = var.endpoint
    sts   = var.endpoint
  }
}

data "aws_vpc" "default" { default = true }
data "aws_subnets" "default" {
  filter {
    name   = "vpc-id"
    values = [data.aws_vpc.default.id]
  }
}
data "aws_subnet" "one" {
  for_each = toset(data.aws_subnets.default.ids)
  id       = each.value
}
data "aws_security_group" "default" {
  vpc_id = data.aws_vpc.default.id
  name   = "default"
}
data "aws_ami" "al2023" {
  most_recent = true
  owners      = ["amazon"]
  filter {
    name   = "name"
    values = ["al2023-ami-2023.*"]
  }
  filter {
    name   = "architecture"
    values = ["arm64"]
  }
}
resource "aws_instance" "crawler" {
  count                  = 2
  ami                    = data.aws_ami.al2023.id
  instance_type          = "t4g.nano"
  subnet_id              = sort(data.aws_subnets.default.ids)[count.index]
  vpc_security_group_ids = [data.aws_security_group.default.id]
  user_data              = "#!/bin/sh\n"
  tags                   = { Name = "terraform ${count.index}" }
  metadata_options {
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }
}
resource "aws_lb" "offers" {
  name               = "tf-offers"
  internal           = true
  load_balancer_type = "application"
  subnets            = sort(data.aws_subnets.default.ids)
  security_groups    = [data.aws_security_group.default.id]
  tags               = { made = "by terraform" }
}
resource "aws_lb_target_group" "crawlers" {
  name                 = "tf-crawlers"
  port                 = 8080
  protocol             = "HTTP"
  vpc_id               = data.aws_vpc.default.id
  deregistration_delay = 0
  health_check {
    path                = "/healthz"
    interval            = 10
    healthy_threshold   = 2
    unhealthy_threshold = 2
  }
}
resource "aws_lb_listener" "http" {
  load_balancer_arn = aws_lb.offers.arn
  port              = 18099
  protocol          = "HTTP"
  default_action {
    type             = "forward"
    target_group_arn = aws_lb_target_group.crawlers.arn
  }
}
resource "aws_lb_target_group_attachment" "crawler" {
  count            = 2
  target_group_arn = aws_lb_target_group.crawlers.arn
  target_id        = aws_instance.crawler[count.index].id
  port             = 8080
}
resource "aws_s3_bucket" "results" {
  bucket        = "tf-results"
  force_destroy = true
}
resource "aws_s3_object" "bundle" {
  bucket  = aws_s3_bucket.results.id
  key     = "bundles/a b.txt"
  content = "hello"
}
output "url" { value = "http://${aws_lb.offers.dns_name}:18099" }
