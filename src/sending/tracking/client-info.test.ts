import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientInfo } from './client-info.ts'

const HOME = '192.0.2.44'
const GOOGLE = '66.249.93.17'
const APPLE = '172.225.10.9'
const CHROME =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36'
const MAIL_MAC = 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)'
const MAIL_IOS =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148'
const SAFARI_IOS =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1'
const PROXY = 'Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)'
const YAHOO = 'YahooMailProxy; https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html'
const THUNDERBIRD = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Thunderbird/140.3.0'
const OUTLOOK = 'Mozilla/4.0 (compatible; ms-office; MSOffice 16)'

const CASES: readonly (readonly [why: string, agent: string, ip: string, ...expected: string[]])[] = [
  // name, operating system, type, device, bot
  [
    'Firefox',
    'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
    HOME,
    'Firefox',
    'Linux',
    'browser',
    'desktop',
    '',
  ],
  ['Chrome', CHROME, HOME, 'Chrome', 'Windows', 'browser', 'desktop', ''],
  ['Safari on a phone', SAFARI_IOS, HOME, 'Mobile Safari', 'iOS', 'mobile browser', 'mobile', ''],
  [
    'a person behind Private Relay',
    SAFARI_IOS,
    APPLE,
    'Mobile Safari',
    'iOS',
    'mobile browser',
    'mobile',
    '',
  ],
  ['Apple Mail without protection', MAIL_MAC, HOME, 'Apple Mail', 'Mac OS', 'email client', 'desktop', ''],
  ['Mail on a phone without protection', MAIL_IOS, HOME, 'Apple Mail', 'iOS', 'email client', 'mobile', ''],
  [
    'Mail Privacy Protection',
    'Mozilla/5.0',
    APPLE,
    'Apple Mail',
    'unknown',
    'email client',
    'unknown',
    'apple',
  ],
  [
    'Mail Privacy Protection, IPv6',
    MAIL_MAC,
    '2a02:26f7:1::5',
    'Apple Mail',
    'Mac OS',
    'email client',
    'desktop',
    'apple',
  ],
  ['the same words from elsewhere', 'Mozilla/5.0', HOME, 'unknown', 'unknown', 'unknown', 'unknown', ''],
  ["Gmail's proxy", PROXY, GOOGLE, 'Gmail', 'Windows', 'email client', 'unknown', 'gmail'],
  [
    "Gmail's proxy in a block not listed",
    PROXY,
    HOME,
    'Gmail',
    'Windows',
    'email client',
    'unknown',
    'gmail',
  ],
  ["Gmail's prefetch", 'Mozilla/5.0', GOOGLE, 'Gmail', 'unknown', 'email client', 'unknown', 'gmail'],
  ["Yahoo's proxy", YAHOO, HOME, 'Yahoo Mail', 'unknown', 'email client', 'unknown', ''],
  ['Thunderbird', THUNDERBIRD, HOME, 'Thunderbird', 'Linux', 'email client', 'desktop', ''],
  ['Outlook', OUTLOOK, HOME, 'Outlook', 'unknown', 'email client', 'unknown', ''],
  ['curl', 'curl/8.5.0', HOME, 'curl', 'unknown', 'library', 'unknown', 'generic'],
  ['Go', 'Go-http-client/2.0', HOME, 'Go', 'unknown', 'library', 'unknown', 'generic'],
  ['a gateway', 'BarracudaCentral Link Checker', HOME, 'unknown', 'unknown', 'robot', 'unknown', 'generic'],
  [
    'a link checker of Office',
    'Microsoft Office Existence Discovery',
    HOME,
    'unknown',
    'unknown',
    'robot',
    'unknown',
    'generic',
  ],
  [
    'a crawler',
    'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)',
    HOME,
    'unknown',
    'unknown',
    'robot',
    'unknown',
    'generic',
  ],
  ['nothing', '', HOME, 'unknown', 'unknown', 'unknown', 'unknown', ''],
]

for (const [why, agent, address, ...expected] of CASES) {
  test(`client-info: ${why}`, () => {
    const info = clientInfo(agent, address)
    const { 'client-name': name, 'client-os': os, 'client-type': type, 'device-type': device, bot } = info
    assert.deepEqual([name, os, type, device, bot], expected)
    assert.equal(info['user-agent'], agent)
  })
}

test('a long User-Agent is truncated, and none takes long to parse', () => {
  const hostile = [
    'a'.repeat(30_000),
    `Mozilla/5.0 (${'x;'.repeat(15_000)}`,
    `${'Mozilla/5.0 ('.repeat(2_000)}`,
    ' '.repeat(30_000),
    `Opera/${'9'.repeat(30_000)}`,
  ]
  for (const agent of hostile) assert.equal(clientInfo(agent, HOME)['user-agent'].length, 512)
  const nested = [30, 20, 10, 6].map(
    (count) => `${'NAVER('.repeat(count)}${'0'.repeat(100)}.${'E'.repeat(200)}`,
  )
  for (const agent of nested) {
    const before = process.threadCpuUsage()
    clientInfo(agent, HOME)
    const { user } = process.threadCpuUsage(before)
    assert.ok(user < 50_000, `${agent.slice(0, 20)}: ${user / 1_000} ms`)
  }
})
