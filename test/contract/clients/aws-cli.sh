#!/bin/bash
# What an engineer does by hand with aws-cli; each line fails on its own if the sandbox does not answer as AWS does.
# usage: aws-cli.sh FOLDER, with AWS_ENDPOINT_URL, region and keys in the environment
set -euo pipefail
folder=$1

state_of() { aws ec2 describe-instances --instance-ids "$1" --query 'Reservations[0].Instances[0].State.Name' --output text; }
until_state() { until [ "$(state_of "$1")" = "$2" ]; do :; done; }

read -r subnet_a subnet_b < <(aws ec2 describe-subnets --filters Name=default-for-az,Values=true \
  --query 'Subnets[].SubnetId' --output text)
vpc=$(aws ec2 describe-vpcs --query 'Vpcs[0].VpcId' --output text)
image=$(aws ec2 describe-images --owners amazon --filters Name=architecture,Values=arm64 'Name=name,Values=al2023-ami-2023.*' \
  --query 'sort_by(Images,&CreationDate)[-1].ImageId' --output text)
id=$(aws ec2 run-instances --image-id "$image" --instance-type t4g.nano --subnet-id "$subnet_a" --user-data '#!/bin/sh' \
  --tag-specifications 'ResourceType=instance,Tags=[{Key=by,Value=cli}]' --query 'Instances[0].InstanceId' --output text)
until_state "$id" running
aws ec2 wait instance-status-ok --instance-ids "$id"
aws ec2 create-tags --resources "$id" --tags Key=more,Value=yes
[ "$(aws ec2 describe-instances --filters Name=tag:more,Values=yes --query 'Reservations[].Instances[].InstanceId' --output text)" = "$id" ]
aws ec2 describe-tags --filters "Name=resource-id,Values=$id"
aws ec2 describe-volumes --filters "Name=attachment.instance-id,Values=$id"

balancer=$(aws elbv2 create-load-balancer --name cli-lb --subnets "$subnet_a" "$subnet_b" \
  --query 'LoadBalancers[0].LoadBalancerArn' --output text)
group=$(aws elbv2 create-target-group --name cli-tg --protocol HTTP --port 8080 --vpc-id "$vpc" \
  --query 'TargetGroups[0].TargetGroupArn' --output text)
aws elbv2 create-listener --load-balancer-arn "$balancer" --protocol HTTP --port 18071 \
  --default-actions "Type=forward,TargetGroupArn=$group"
aws elbv2 register-targets --target-group-arn "$group" --targets "Id=$id"
[ "$(aws elbv2 describe-target-health --target-group-arn "$group" --query 'TargetHealthDescriptions[].Target.Id' --output text)" = "$id" ]
aws elbv2 deregister-targets --target-group-arn "$group" --targets "Id=$id"
aws elbv2 delete-load-balancer --load-balancer-arn "$balancer"
aws elbv2 delete-target-group --target-group-arn "$group"

aws s3 mb s3://cli-bucket
echo hello > "$folder/hello.txt"
aws s3 cp "$folder/hello.txt" 's3://cli-bucket/a b/hello.txt'
aws s3 cp 's3://cli-bucket/a b/hello.txt' "$folder/back.txt"
cmp "$folder/hello.txt" "$folder/back.txt"
aws s3 ls --recursive s3://cli-bucket
aws s3 rb --force s3://cli-bucket

aws sts get-caller-identity
aws ec2 terminate-instances --instance-ids "$id"
until_state "$id" terminated
echo "all done with $id"
