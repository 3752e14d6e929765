/** The topics that the operator has named, and the state of their subscriptions. */
import { randomBytes } from 'node:crypto'
import { toBase32 } from '../../base/base32.ts'
import type { Clock } from '../../base/time/clock.ts'
import { withPod } from '../../platform/store/pods/pod.ts'
import type { SnsTopicRow } from '../../platform/store/schema.ts'
import { insert, type Store } from '../../platform/store/store.ts'

/** 128 bits. */
const TOKEN_BYTES = 16
export const TOPICS_MAX = 50

export type Topics = ReturnType<typeof createTopics>

export function createTopics(store: Store, clock: Clock) {
  const rows = () => store.db.selectFrom('sns_topics').selectAll()

  return {
    list: (): Promise<SnsTopicRow[]> => rows().orderBy('arn').execute(),
    find: (arn: string): Promise<SnsTopicRow | undefined> => rows().where('arn', '=', arn).executeTakeFirst(),
    /** The topic whose endpoint has that token. */
    atToken: (token: string): Promise<SnsTopicRow | undefined> =>
      rows().where('token', '=', token).executeTakeFirst(),
    /** Names a topic, or leaves it as it is. */
    async add(arn: string): Promise<void> {
      const token = withPod(store.pod, toBase32(randomBytes(TOKEN_BYTES)))
      const row = { arn, token, created_at: Math.floor(clock.now()), subscription_at: 0 }
      const { sql, values } = insert('sns_topics', row)
      await store.commit([{ sql: `${sql} ON CONFLICT (arn) DO NOTHING`, values }])
    },
    /** False: it was not named. */
    async remove(arn: string): Promise<boolean> {
      const [result] = await store.commit([{ sql: 'DELETE FROM sns_topics WHERE arn = ?', values: [arn] }])
      return result?.affected === 1
    },
    /** `signedAt`: of the message about it, in Unix milliseconds. */
    async setConfirmed(arn: string, isConfirmed: boolean, signedAt: number): Promise<void> {
      const sql =
        'UPDATE sns_topics SET confirmed_at = ?, subscription_at = ? WHERE arn = ? AND subscription_at < ?'
      const values = [isConfirmed ? Math.floor(clock.now()) : null, signedAt, arn, signedAt]
      await store.commit([{ sql, values }])
    },
  }
}
