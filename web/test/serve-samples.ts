/**
 * The dashboard over the stand-in with sample mail, and a new message every few seconds, to look at while
 * working on it: `node web/test/serve-samples.ts [port]`. With `node_modules/.bin/vite web` beside it,
 * changes show at once.
 */
import { builtDashboard } from '../../test/support/built-dashboard.ts'
import { startFakeApi } from './fake-api.ts'
import { everydayMail, hostileMail, mail } from './sample-mail.ts'

const ARRIVAL_EVERY_MS = 10_000
const ELSEWHERE = 'https://images.example.com'

const api = await startFakeApi(builtDashboard(), Number(process.argv[2] ?? 8080))
for (const sample of [...hostileMail(ELSEWHERE), ...everydayMail(ELSEWHERE)]) api.mails.unshift(sample)
let arrivals = 0
const timer = setInterval(() => {
  arrivals += 1
  api.deliver(mail({ subject: `Arrival ${arrivals}`, text: 'Hello.' }))
}, ARRIVAL_EVERY_MS)
console.log(`Dashboard with sample mail: ${api.origin}`)
const stop = async () => {
  clearInterval(timer)
  await api.close()
}
process.once('SIGINT', stop)
process.once('SIGTERM', stop)
