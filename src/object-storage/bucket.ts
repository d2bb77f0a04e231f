// A bucket of an S3-compatible server, as the configuration names it.

export interface BucketSettings {
  /** Undefined: that of AWS in the region. */
  endpoint?: string | undefined;
  bucket?: string | undefined;
  region: string;
  access_key?: string | undefined;
  secret_key?: string | undefined;
}

/** The runtime's own client; the bucket stands in the path, which every server understands. */
export function bucketClient({ endpoint, bucket, region, access_key, secret_key }: BucketSettings): Bun.S3Client {
  return new Bun.S3Client({
    ...(endpoint !== undefined && { endpoint }),
    bucket: bucket ?? "",
    region,
    accessKeyId: access_key ?? "",
    secretAccessKey: secret_key ?? "",
    virtualHostedStyle: false,
  });
}
