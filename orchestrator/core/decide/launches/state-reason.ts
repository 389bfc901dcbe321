/** EC2's reasons for ending an instance, in words, with their remedies. Pure. */
import type { StateReason } from '../../cloud/compute.ts';

/** `Client.VolumeLimitExceeded: …`; AWS itself often begins the message with the code. */
export function stateReasonText({ code, message }: StateReason): string {
  if (message === '') return code;
  return message.startsWith(code) ? message : `${code}: ${message}`;
}

/** What to do about machines that end at launch for this reason. */
export function stateReasonRemedy({ code }: StateReason): string {
  // https://docs.aws.amazon.com/ebs/latest/userguide/ebs-encryption-requirements.html
  if (/kms/i.test(code) || code === 'Client.InternalError')
    return (
      'the volume is encrypted with a KMS key that the launch may not use: let the main server use that key ' +
      '(orchestrator setup --ebs-kms-key prints the rights; the key policy must allow them too), ' +
      'or make aws/ebs the default key for EBS encryption'
    );
  if (code === 'Client.VolumeLimitExceeded')
    return 'ask AWS for more storage (Service Quotas, Amazon EBS: storage for gp3 volumes), or delete volumes that are not in use';
  if (code.startsWith('Client.InvalidSnapshot')) return 'the snapshot of the image is gone: name another aws.image';
  if (code === 'Server.InsufficientInstanceCapacity')
    return 'allow more types in aws.instance_types and subnets of more zones in aws.subnets';
  if (code.startsWith('Server.'))
    return 'the fault is with AWS: look at the AWS Health Dashboard and try again later, or in other zones (aws.subnets)';
  return 'look up the code in the reference of StateReason in the EC2 API';
}
