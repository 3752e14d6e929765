/** Many fetches of the same few pages over persistent connections: `fetch` costs several times as much. */
import { Agent, request } from 'node:http'

/** More would only wait for each other in the service. */
const CONNECTIONS = 16

/** Fetches the URLs in turn, `count` times in all, every fifth by HEAD. Resolves the number of responses per status. */
export async function fetchRepeatedly(urls: readonly string[], count: number): Promise<Map<number, number>> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  const statuses = new Map<number, number>()
  let next = 0
  const work = async () => {
    while (next < count) {
      const at = next++
      const status = await fetchOnce(agent, urls[at % urls.length] as string, at % 5 === 4 ? 'HEAD' : 'GET')
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  }
  try {
    await Promise.all(Array.from({ length: CONNECTIONS }, work))
  } finally {
    agent.destroy()
  }
  return statuses
}

const fetchOnce = (agent: Agent, url: string, method: string): Promise<number> =>
  new Promise((resolve, reject) => {
    request(url, { agent, method }, (response) => {
      response.on('end', () => resolve(response.statusCode ?? 0))
      response.on('error', reject)
      response.resume()
    })
      .on('error', reject)
      .end()
  })
