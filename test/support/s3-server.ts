/** An S3 server on loopback. It checks who calls and the form of a signature, not the signature itself. */
import type { TestContext } from 'node:test'
import S3rver from 's3rver'
import { temporaryFolder } from './stores.ts'

export interface S3Server {
  /** Settings of a service that uses it. */
  env: Record<string, string>
  /** Where it keeps its buckets. */
  folder: string
  close(): Promise<void>
}

const BUCKET = 'mail-blobs'

const KEY = { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER' }

export async function startS3(t: TestContext): Promise<S3Server> {
  const folder = await temporaryFolder(t)
  const server = new S3rver({
    address: '127.0.0.1',
    port: 0,
    silent: true,
    directory: folder,
    configureBuckets: [{ name: BUCKET, configs: [] }],
  })
  const { port } = await server.run()
  let closed: Promise<void> | null = null
  const close = () => (closed ??= server.close())
  t.after(close)
  const endpoint = `http://127.0.0.1:${port}`
  return {
    env: { SENDWRIGHT_BLOBS: `s3://${BUCKET}/one`, SENDWRIGHT_BLOBS_ENDPOINT: endpoint, ...KEY },
    folder,
    close,
  }
}
