/** An error with AWS's code and message. Each service has its own format (query-protocol.ts, s3/s3-error.ts). */

export class AwsError extends Error {
  readonly code: string;
  readonly status: number;

  /** @param code AWS's error code, such as `InvalidInstanceID.NotFound` @param status HTTP status AWS answers with */
  constructor(code: string, message: string, status = 400) {
    super(message);
    this.name = 'AwsError';
    this.code = code;
    this.status = status;
  }
}
