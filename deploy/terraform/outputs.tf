output "fleet_yaml" {
  value = var.fleet_yaml
}
