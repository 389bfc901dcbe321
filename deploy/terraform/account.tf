# What crawlfleet needs in an account. Written by: orchestrator setup
terraform {
  required_version = ">= 1.3"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

provider "aws" {
  region = var.region
  # if tags
  default_tags {
    tags = var.tags
  }
}

data "aws_caller_identity" "current" {}
