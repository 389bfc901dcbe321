resource "aws_iam_role" "controller" {
  name               = "${var.name}-controller"
  assume_role_policy = var.instance_trust
}

resource "aws_iam_instance_profile" "controller" {
  name = "${var.name}-controller"
  role = aws_iam_role.controller.name
}
