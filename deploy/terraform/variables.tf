# The values that setup fills in; it leaves this file out. A null attribute and a block below "# if NAME" go where the
# value is null or false.

variable "region" { type = string }
variable "tags" { type = map(string) } # aws.tags
variable "name" { type = string }      # prefix of the names of roles, policies and groups
variable "owner" { type = string }     # aws.owner

# The network: a subnet of aws.subnets or null; its VPC, that of --vpc, or null; true where both are null.
variable "first_subnet" { type = string }
variable "vpc" { type = string }
variable "default_vpc" { type = bool }

variable "bucket" { type = string }
variable "sse_algorithm" { type = string }
variable "object_key" { type = string } # ARN of the KMS key of aws.sse, or null
variable "keep_days" { type = number }
variable "backup_prefix" { type = string } # null where the database is no SQLite file

# Policies as JSON, from deploy/policies; null where they are not wanted.
variable "instance_profile" { type = string }
variable "instance_trust" { type = string }
variable "instance_policy" { type = string }
variable "commands_policy" { type = string }
variable "sse_policy" { type = string }
variable "main_server_policy" { type = string }
variable "session_policy" { type = string }

# controller-policy.tf is filled in once for each managed policy of the main server.
variable "policy_key" { type = string }
variable "policy" { type = string }
variable "controller_user" { type = string } # an existing IAM user that gets them, or null

# Where the main server's offers come from: its group, or its addresses; the other one is null.
variable "main_server_group" { type = string }
variable "main_server_cidr" { type = string }

variable "api_port" { type = number }
variable "balancer_port" { type = number }
variable "callback_port" { type = number }
variable "canary_port" { type = number } # null without --canary

# The main server of --main-server-on.
variable "main_server_type" { type = string }
variable "main_server_prefix" { type = string }
variable "main_server_subnet" { type = string }
variable "database_secret" { type = string } # null where the database is an SQLite file
variable "user_data" { type = string }

variable "fleet_yaml" { type = string }
