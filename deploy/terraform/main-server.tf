# if database_secret
# Without the waiting time, in which no secret of this name could be made again.
resource "aws_secretsmanager_secret" "database" {
  name                    = var.database_secret
  recovery_window_in_days = 0
}

resource "aws_iam_role_policy" "controller_main_server" {
  name   = "main-server"
  role   = aws_iam_role.controller.id
  policy = var.main_server_policy
}

resource "aws_iam_role_policy" "controller_instance_commands" {
  name   = "session-manager"
  role   = aws_iam_role.controller.id
  policy = var.session_policy
}

# fleet.yaml, the files that it names, and the output of npm pack belong into main-server/ beside this file.
resource "aws_s3_object" "main_server" {
  for_each    = fileset("${path.module}/main-server", "**")
  bucket      = aws_s3_bucket.fleet.id
  key         = "${var.main_server_prefix}${each.value}"
  source      = "${path.module}/main-server/${each.value}"
  source_hash = filemd5("${path.module}/main-server/${each.value}")
}

data "aws_ssm_parameter" "main_image" {
  name = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-arm64"
}

# if any_subnet
data "aws_subnets" "main" {
  filter {
    name   = "vpc-id"
    values = [data.aws_vpc.fleet.id]
  }
}

resource "aws_instance" "main" {
  ami                         = data.aws_ssm_parameter.main_image.value
  instance_type               = var.main_server_type
  subnet_id                   = var.main_server_subnet
  vpc_security_group_ids      = [aws_security_group.main.id]
  iam_instance_profile        = aws_iam_instance_profile.controller.name
  associate_public_ip_address = true
  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }
  root_block_device {
    volume_size = 20
    volume_type = "gp3"
    encrypted   = true
  }
  tags = {
    Name = "${var.name} main server"
  }
  user_data = var.user_data
  # A newer image or script is for a new machine: terraform apply -replace=aws_instance.main
  lifecycle {
    ignore_changes = [ami, user_data]
  }
  depends_on = [
    aws_iam_role_policy.controller_main_server,
    aws_iam_role_policy_attachment.controller,
    aws_s3_object.main_server,
    aws_vpc_security_group_egress_rule.main,
  ]
}
