/** Shared by drills and tests of crashes: a ledger of accepted messages, and the check of a sink's log against it. */
import { AUTHORIZATION, type ServiceProcess } from './service-process.ts'
import type { Sink } from './smtp-sink.ts'

/** Posts one message; its Message-Id with brackets, or null if it was not answered with 200. */
export async function post(
  service: ServiceProcess,
  fields: { to: string; subject: string; text: string },
  authorization = AUTHORIZATION,
): Promise<{ id: string } | { status: number | null }> {
  const answer = await fetch(`${service.url}/v3/${service.domain}/messages`, {
    method: 'POST',
    headers: { authorization },
    body: new URLSearchParams({ from: `sender@${service.domain}`, ...fields }),
  }).catch(() => null)
  if (answer?.status !== 200) return { status: answer?.status ?? null }
  // A process that dies after the header has promised nothing.
  const body = (await answer.json().catch(() => null)) as { id: string } | null
  return body ?? { status: null }
}

/** Waiting, scheduled and in flight. */
export async function queueTotals(service: ServiceProcess): Promise<number> {
  const answer = await fetch(`${service.url}/sendwright/v1/system`, {
    headers: { authorization: AUTHORIZATION },
  })
  const { queue } = (await answer.json()) as { queue: Record<string, number> }
  return Object.values(queue).reduce((sum, count) => sum + count, 0)
}

export function judge(
  ledger: ReadonlySet<string>,
  sink: Pick<Sink, 'messages'>,
): { lost: string[]; repeated: string[] } {
  const received = new Map<string, number>()
  for (const { raw } of sink.messages) {
    const id = /^message-id: *(<[^>]+>)/im.exec(raw.subarray(0, 8192).toString('latin1'))?.[1] ?? 'none'
    received.set(id, (received.get(id) ?? 0) + 1)
  }
  return {
    lost: [...ledger].filter((id) => !received.has(id)),
    repeated: [...received].filter(([, count]) => count > 1).map(([id]) => id),
  }
}
