"""What a script with boto3 does: launch, tag, list, register, store, terminate. Any error ends it.

usage: boto3-client.py ENDPOINT
"""
import sys
import urllib.request

import boto3

place = {
    "endpoint_url": sys.argv[1],
    "region_name": "ap-northeast-1",
    "aws_access_key_id": "any",
    "aws_secret_access_key": "any",
}
ec2 = boto3.client("ec2", **place)
elb = boto3.client("elbv2", **place)
s3 = boto3.client("s3", **place)

subnets = ec2.describe_subnets(Filters=[{"Name": "default-for-az", "Values": ["true"]}])["Subnets"]
image = max(
    ec2.describe_images(Owners=["amazon"], Filters=[{"Name": "architecture", "Values": ["arm64"]}])["Images"],
    key=lambda image: image["CreationDate"],
)["ImageId"]
launched = ec2.run_instances(
    ImageId=image,
    InstanceType="t4g.nano",
    MinCount=3,
    MaxCount=3,
    SubnetId=subnets[0]["SubnetId"],
    UserData="#!/bin/sh\n",
    TagSpecifications=[{"ResourceType": "instance", "Tags": [{"Key": "by", "Value": "boto3"}]}],
)["Instances"]
ids = sorted(instance["InstanceId"] for instance in launched)
ec2.get_waiter("instance_running").wait(InstanceIds=ids, WaiterConfig={"Delay": 1, "MaxAttempts": 30})
ec2.create_tags(Resources=ids, Tags=[{"Key": "more", "Value": "yes"}])
pages = ec2.get_paginator("describe_instances").paginate(
    Filters=[{"Name": "tag:more", "Values": ["yes"]}], PaginationConfig={"PageSize": 5}
)
assert ids == sorted(i["InstanceId"] for page in pages for r in page["Reservations"] for i in r["Instances"])

balancer = elb.create_load_balancer(Name="boto3-lb", Subnets=[s["SubnetId"] for s in subnets])["LoadBalancers"][0]
elb.get_waiter("load_balancer_available").wait(
    LoadBalancerArns=[balancer["LoadBalancerArn"]], WaiterConfig={"Delay": 1, "MaxAttempts": 30}
)
group = elb.create_target_group(Name="boto3-tg", Protocol="HTTP", Port=8080, VpcId=subnets[0]["VpcId"])["TargetGroups"][0]
arn = group["TargetGroupArn"]
elb.create_listener(
    LoadBalancerArn=balancer["LoadBalancerArn"],
    Protocol="HTTP",
    Port=18072,
    DefaultActions=[{"Type": "forward", "TargetGroupArn": arn}],
)
elb.register_targets(TargetGroupArn=arn, Targets=[{"Id": id} for id in ids])
health = elb.describe_target_health(TargetGroupArn=arn)["TargetHealthDescriptions"]
assert ids == sorted(target["Target"]["Id"] for target in health)
elb.deregister_targets(TargetGroupArn=arn, Targets=[{"Id": id} for id in ids])
elb.delete_load_balancer(LoadBalancerArn=balancer["LoadBalancerArn"])
elb.delete_target_group(TargetGroupArn=arn)

s3.create_bucket(Bucket="boto3-bucket", CreateBucketConfiguration={"LocationConstraint": "ap-northeast-1"})
s3.put_object(Bucket="boto3-bucket", Key="a b/ü.txt", Body=b"hello")
url = s3.generate_presigned_url("get_object", Params={"Bucket": "boto3-bucket", "Key": "a b/ü.txt"})
assert urllib.request.urlopen(url).read() == b"hello"
assert [o["Key"] for o in s3.list_objects_v2(Bucket="boto3-bucket")["Contents"]] == ["a b/ü.txt"]
s3.delete_objects(Bucket="boto3-bucket", Delete={"Objects": [{"Key": "a b/ü.txt"}]})
s3.delete_bucket(Bucket="boto3-bucket")

ec2.terminate_instances(InstanceIds=ids)
ec2.get_waiter("instance_terminated").wait(InstanceIds=ids, WaiterConfig={"Delay": 1, "MaxAttempts": 30})
print("all done with", ", ".join(ids))
