resource "aws_iam_role" "instance" {
  name               = var.instance_profile
  assume_role_policy = var.instance_trust
}

resource "aws_iam_role_policy" "instance" {
  name   = "put-results"
  role   = aws_iam_role.instance.id
  policy = var.instance_policy
}

# if commands_policy
resource "aws_iam_role_policy" "instance_commands" {
  name   = "take-commands"
  role   = aws_iam_role.instance.id
  policy = var.commands_policy
}

# if sse_policy
resource "aws_iam_role_policy" "instance_sse" {
  name   = "encrypt-results"
  role   = aws_iam_role.instance.id
  policy = var.sse_policy
}

resource "aws_iam_instance_profile" "instance" {
  name = var.instance_profile
  role = aws_iam_role.instance.name
}
