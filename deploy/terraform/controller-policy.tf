resource "aws_iam_policy" "controller" {
  name   = "${var.name}-${var.policy_key}"
  policy = var.policy
}

# if controller_user
resource "aws_iam_user_policy_attachment" "controller" {
  user       = var.controller_user
  policy_arn = aws_iam_policy.controller.arn
}

# if controller_role
resource "aws_iam_role_policy_attachment" "controller" {
  role       = aws_iam_role.controller.name
  policy_arn = aws_iam_policy.controller.arn
}

# if is_controller
output "controller_policy_arn" {
  value = aws_iam_policy.controller.arn
}
