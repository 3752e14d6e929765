/** Whether the relay of a setting can be used, before the setting is written. */
import { SECOND_MS } from '../../base/time/durations.ts'
import { connectToRelay, linkOf } from '../../mail/deliver/connect/relay.ts'
import type { DeliveryMode } from '../../platform/config/sending.ts'

/** Somebody waits before the terminal. */
const STEP_MS = 10 * SECOND_MS

/** Logs in as deliveries do, and leaves. Null: that worked, or mail goes through no relay; else why not. */
export async function relayFault(mode: DeliveryMode, heloName: string): Promise<string | null> {
  if (mode.kind !== 'relay') return null
  try {
    const connection = await connectToRelay(linkOf('', mode), STEP_MS, { heloName })
    await connection.quit()
    return null
  } catch (error) {
    return (error as Error).message
  }
}
