/**
 * Objects of JSON lines, gzip, in a bucket: `<prefix>date=2026-03-01/hour=14/<first id>-<last id>.jsonl.gz`, by the time of
 * their first event. Warehouses read `date` and `hour` as columns.
 */
import { MINUTE_MS } from '../../../base/time/durations.ts'
import { createS3Client } from '../../../platform/store/blobs/s3-client.ts'
import { inPieces } from '../../../protocols/message/mime-message.ts'
import { compressed, type SinkEvent, type SinkKind } from '../sink.ts'

export const s3Sink: SinkKind = {
  // An object a minute, and a full one at once.
  eventsMax: 5_000,
  everyMs: MINUTE_MS,
  needs: ['url', 'bucket', 'access_key_id'],
  takes: ['url', 'bucket', 'access_key_id', 'region', 'prefix'],
  secret: 'needed',
  async open({ settings, secret }) {
    const { url = '', bucket = '', region = 'us-east-1', prefix = '', access_key_id = '' } = settings
    const client = createS3Client({
      ...{ endpoint: url, bucket, region, accessKeyId: access_key_id },
      ...{ secretAccessKey: secret, sessionToken: null },
    })
    return {
      async send(events) {
        const lines = await compressed(Buffer.from(events.map(({ json }) => `${json}\n`).join('')))
        await client.put(`${prefix}${objectName(events)}`, inPieces(lines))
      },
      close() {},
    }
  },
}

function objectName(events: readonly SinkEvent[]): string {
  const [first, last] = [events[0] as SinkEvent, events.at(-1) as SinkEvent]
  const [date, time = ''] = new Date(first.at).toISOString().split('T')
  return `date=${date}/hour=${time.slice(0, 2)}/${first.id}-${last.id}.jsonl.gz`
}
