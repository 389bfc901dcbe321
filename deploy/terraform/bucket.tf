resource "aws_s3_bucket" "fleet" {
  bucket = var.bucket
}

resource "aws_s3_bucket_public_access_block" "fleet" {
  bucket                  = aws_s3_bucket.fleet.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_ownership_controls" "fleet" {
  bucket = aws_s3_bucket.fleet.id
  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "fleet" {
  bucket = aws_s3_bucket.fleet.id
  rule {
    apply_server_side_encryption_by_default {
      sse_algorithm     = var.sse_algorithm
      kms_master_key_id = var.object_key
    }
  }
}

# bundles/ has no rule: a bundle is put once and used every night, and one deleted in the middle of a run would be missing.
resource "aws_s3_bucket_lifecycle_configuration" "fleet" {
  bucket = aws_s3_bucket.fleet.id
  rule {
    id     = "unfinished-uploads"
    status = "Enabled"
    filter {}
    abort_incomplete_multipart_upload {
      days_after_initiation = 1
    }
  }
  rule {
    id     = "old-runs"
    status = "Enabled"
    filter {
      prefix = "runs/"
    }
    expiration {
      days = var.keep_days
    }
  }
  # if backup_prefix
  rule {
    id     = "old-backups"
    status = "Enabled"
    filter {
      prefix = var.backup_prefix
    }
    expiration {
      days = var.keep_days
    }
  }
}
