import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { anyCharacter } from '../../../test/support/any-character.ts'
import { REPLIES, reportOf, spoken } from '../../../test/support/reports/replies.ts'
import { readDsn } from '../../protocols/reports/dsn/report.ts'
import { compilePattern, PatternSyntaxError } from '../../protocols/smtp/reply-pattern.ts'
import { readReportMail } from '../sessions/read-report-mail.ts'
import { classify, type FailureText, maskedSample, matchText, reasonOf } from './classify.ts'
import { reportedFailure } from './reports.ts'
import { loadRules } from './rules.ts'

const rules = loadRules(null)
const source = JSON.parse(readFileSync(new URL('rules.json', import.meta.url), 'utf8')).rules as {
  'rule-id': string
  category: string
  patterns: string[]
  samples: string[]
}[]

/** A reply as its text: "550 5.1.1 No such user". */
const reply = (text: string, more: Partial<FailureText> = {}): FailureText => {
  const code = Number(text.slice(0, 3))
  const envelope = { recipients: [], senders: [] }
  return { code, enhanced: null, text: text.slice(4), envelope, permanent: code >= 500, ...more }
}

test('a refusal by the rules of a large receiver names the rule that the domain breaks', () => {
  const cases: [text: string, id: string, named: string][] = [
    [
      "550 5.7.515 Access denied, sending domain a.example doesn't meet the required authentication level. The sender's domain in the 5322.From address doesn't meet the authentication requirements",
      ...(['outlook-auth-level', 'rules spf, dkim and dmarc'] as const),
    ],
    [
      '550-5.7.26 This mail has been blocked because the sender is unauthenticated.\r\n550 5.7.26 Gmail requires all senders to authenticate with either SPF or DKIM.',
      ...(['gmail-unauthenticated', 'rules spf, dkim and dmarc'] as const),
    ],
    [
      "550 5.7.26 Unauthenticated email from a.example is not accepted due to domain's DMARC policy.",
      ...(['gmail-dmarc', 'rule dmarc'] as const),
    ],
    [
      '554 5.7.9 Message not accepted for policy reasons [AU01]',
      'yahoo-unauthenticated',
      'rules spf and dkim',
    ],
    [
      '550 5.7.509 Access denied, sending domain a.example does not pass DMARC verification and has a DMARC policy of reject.',
      ...(['m365-dmarc', 'rule dmarc'] as const),
    ],
  ]
  for (const [text, id, named] of cases) {
    const found = classify(rules, reply(text))
    assert.deepEqual([found.ruleId, found.category, found.fault], [id, 'AUTHENTICATION', 'sender'], text)
    assert.ok(found.explanation.includes(`: ${named} of the domain's sender rules.`), found.explanation)
  }
})

test('every sample of the rule file is classified as its own rule', () => {
  let count = 0
  for (const { 'rule-id': id, category, samples } of source) {
    for (const sample of samples) {
      const found = classify(rules, reply(sample))
      assert.deepEqual([found.ruleId, found.category], [id, category], sample)
      count++
    }
  }
  assert.equal(count, 178)
})

test('the text of the reply decides, in the order of what its words prove', () => {
  const cases: [text: string, rule: string, reason: string][] = [
    ['554 5.7.1 refused [203.5.1.1]', 'generic-policy', 'espblock'],
    ['550 5.4.1 Recipient address rejected: Access denied', 'm365-access-denied', 'espblock'],
    ['550 5.1.1 The email account that you tried to reach does not exist', 'gmail-no-user', 'bounce'],
    ['550 5.1.1 <bob@example.net> does not exist', 'generic-no-user', 'bounce'],
    ['452 4.2.2 The recipient is over quota', 'generic-full', 'generic'],
    ['550 whatever', 'unclassified', 'generic'],
    ['450 4.2.0 greylisted, try later', 'generic-greylist', 'greylisted'],
    ['550 5.7.1 IP is on a blocklist', 'generic-blocklist', 'blacklisted'],
    ['421 4.7.0 too many connections', 'generic-rate', 'espblock'],
    ['550 5.7.1 this is spam', 'generic-spam', 'espblock'],
    ['550 5.7.1 DMARC fails', 'generic-dmarc', 'espblock'],
    ['552 5.3.4 message too big', 'generic-too-large', 'generic'],
    ['498 No MX for example.com', 'generic-dns', 'generic'],
    ['499 connection refused', 'generic-network', 'generic'],
    ['680 the certificate verification failed', 'generic-tls', 'generic'],
    ['450 4.1.1 mailbox unavailable', 'unclassified', 'generic'],
    // Codes and words that providers misuse.
    ['550 5.1.1 Excessive number of unknown recipients', 'generic-rate', 'espblock'],
    ['550 5.7.27 Sender address has null MX', 'generic-sender', 'espblock'],
    ['553 5.5.4 Domain name required for sender address', 'generic-sender', 'espblock'],
    ['550 5.1.1 Buzón inexistente o mailbox lleno', 'generic-full', 'generic'],
    ['550 Esta cuenta de correo ha expirado', 'generic-closed', 'generic'],
    ['550 The user has too many messages in the mailbox', 'generic-storage', 'generic'],
    ['550 Zu viele Mails auf dem Server', 'generic-storage', 'generic'],
    ['550 5.1.1 too many messages sent to the server today', 'generic-rate', 'espblock'],
    ['550 5.1.1 The maximum message size is 10 MB', 'generic-too-large', 'generic'],
    ['550 This mail was identified as spam', 'generic-spam', 'espblock'],
    ['550 Your IP was identified as a spam source', 'generic-listed', 'blacklisted'],
    ['550 said mx.bestclient.example: blocked by SpamAssassin', 'generic-spam', 'espblock'],
    ['550 mx.example: Name or service not known', 'generic-dns', 'generic'],
    ['550 no DNS entry for there.example', 'generic-dns', 'generic'],
    ['450 4.2.1 The user is receiving mail at a rate', 'gmail-user-rate', 'espblock'],
  ]
  for (const [text, rule, reason] of cases) {
    const found = classify(rules, reply(text))
    assert.deepEqual([found.ruleId, reasonOf(found)], [rule, reason], text)
  }
})

test('a failure that is retried never has the reason bounce', () => {
  const found = classify(rules, reply('550 5.1.1 user unknown', { permanent: false }))
  assert.deepEqual([found.category, found.severity, reasonOf(found)], ['BOUNCE', 'TEMPORARY', 'generic'])
})

test('the text is built from codes and all lines; envelope and IP addresses are masked', () => {
  const of = (text: string, more: Partial<FailureText> = {}) => matchText(reply(text, more))
  assert.equal(of('550 550-5.1.1 One\r\n550 5.1.1 two'), '550 5.1.1 one 5.1.1 two')
  assert.equal(of('550 gone', { enhanced: '5.1.1' }), '550 5.1.1 gone')
  assert.equal(of('550 5.1.1 gone', { enhanced: '5.1.1' }), '550 5.1.1 gone')
  assert.equal(
    of('550 <Spam@Virus.example>: rejected, from x@y.example', {
      envelope: { recipients: ['spam@virus.example'], senders: [] },
    }),
    '550 <addr>: rejected, from x@y.example',
  )
  const ips: [text: string, masked: string][] = [
    ['[203.5.1.1]', '[ip]'],
    ['203.5.1.1.', 'ip.'],
    ['from 203.5.1.1, 203.5.1.2', 'from ip, ip'],
    ['1.1.5.203.zen.example', 'ip.zen.example'],
    ['1.2.3.4.5', '1.2.3.4.5'],
    ['[2001:db8::5.1.1.1]', '[ip]'],
    ['ipv6:2001:DB8::1:', 'ipv6:ip:'],
    ['::1 and ::ffff:10.0.0.1', 'ip and ip'],
    ['at 12:34:56 dead::beefs code::abc', 'at 12:34:56 dead::beefs code::abc'],
    ['5.1.1', '5.1.1'],
    ['300.5.1.1', '300.5.1.1'],
  ]
  for (const [text, masked] of ips) assert.equal(of(`550 ${text}`), `550 ${masked}`, text)
})

test('samples contain neither mail nor IP addresses', () => {
  assert.equal(
    maskedSample(550, '550-5.1.1 <Bob+x@example.net> unknown\r\n550 for 192.0.2.1 and 2001:db8::1, a@b'),
    '550 5.1.1 <ADDR> unknown for IP and IP, ADDR',
  )
  assert.equal(maskedSample(550, `x\0${'y'.repeat(5_000)}`).length, 512)
})

test('addresses of the sender are told from those of the recipient, unless both have one domain', () => {
  const of = (text: string, recipient: string) =>
    matchText(reply(`550 ${text}`, { envelope: { recipients: [recipient], senders: ['News@Shop.example'] } }))
  const returnPath = `bounce+${'a'.repeat(39)}@mg.shop.example`
  assert.equal(
    of(`<${returnPath}> for <b@there.example>: no shop.example`, 'b@there.example'),
    '550 <from-addr> for <addr>: no from-domain',
  )
  assert.equal(
    of('<news@shop.example> for <b@shop.example>: no shop.example', 'b@shop.example'),
    '550 <from-addr> for <addr>: no shop.example',
  )
  assert.equal(of('<news@shop.example> unknown', 'news@shop.example'), '550 <addr> unknown')
})

test('words prove more than codes, and words about a cause more than words about the mailbox', () => {
  const cases: [text: string, rule: string][] = [
    ['550 5.1.1 too many unknown users', 'generic-rate'],
    ['550 5.7.1 user unknown', 'generic-no-user'],
    ['550 5.2.2 a', 'generic-full'],
    ['550 5.1.1 a', 'generic-no-user'],
    ['550 5.1.1 access denied', 'generic-policy'],
    ['550 5.2.2 access denied', 'generic-full'],
    ['550 5.1.1 a (#5.1.8)', 'generic-sender'],
  ]
  for (const [text, rule] of cases) assert.equal(classify(rules, reply(text)).ruleId, rule, text)
  const guessed = classify(rules, reply('550 a', { enhanced: '5.1.1', isGuessed: true }))
  assert.deepEqual([guessed.ruleId, guessed.suppression], ['unclassified', 'soft'])
})

test('what a failure adds to the suppressions follows from whose fault it is', () => {
  const cases: [text: string, permanent: boolean, suppression: 'hard' | 'soft' | null][] = [
    ['550 5.1.1 user unknown', true, 'hard'],
    ['550 5.1.1 user unknown', false, null],
    ['552 5.2.2 over quota', true, 'soft'],
    ['452 4.2.2 over quota', true, 'soft'],
    ['499 connection refused', true, 'soft'],
    ['550 whatever', true, 'soft'],
    ['550 5.7.1 blocked by spamhaus', true, null],
    ['451 4.7.1 too many connections', true, null],
    ['550 5.1.8 a', true, null],
    ['552 5.3.4 message too big', true, null],
  ]
  for (const [text, permanent, suppression] of cases) {
    assert.equal(classify(rules, reply(text, { permanent })).suppression, suppression, text)
  }
})

const SUBJECT = {
  recipient: 'bob@there.example',
  returnPath: `bounce+${'a'.repeat(39)}@mg.sender.example`,
  header: 'Subject: hello',
}
const SENDER = 'shop@mg.sender.example'

test('replies of each kind mean the same to a command and in a report, whatever its status says', async () => {
  const wrong: string[] = []
  for (const [kind, list] of Object.entries(REPLIES)) {
    for (const { reply: words, categories, suppressed } of list) {
      const text = spoken(words, SUBJECT)
      const check = (way: string, failure: FailureText) => {
        const { category, ruleId, suppression } = classify(rules, failure)
        if (categories.includes(category) && (suppression === 'hard') === suppressed) return
        wrong.push(`${kind}, ${way}: ${text}: ${ruleId} ${category} ${suppression}`)
      }
      const envelope = { recipients: [SUBJECT.recipient], senders: [SENDER] }
      check('reply', reply(text, { envelope }))
      for (const status of ['5.1.1', '5.2.1', '5.0.0']) {
        const [mail] = await readReportMail(Buffer.from(reportOf(SUBJECT, text, status)))
        const [recipient] = (mail && readDsn(mail)?.recipients) ?? []
        assert.ok(recipient, text)
        check(status, reportedFailure(recipient, SUBJECT, SENDER))
      }
    }
  }
  assert.deepEqual(wrong, [])
})

test('in reply to the content only a code says that the mailbox is gone, not words of a filter', () => {
  const cases: [text: string, isOfContent: boolean, suppression: string | null, reason: string][] = [
    ['550 Unknown user bob', false, 'hard', 'bounce'],
    ['550 Unknown user bob', true, 'soft', 'generic'],
    ['550 : User unknown', true, 'soft', 'generic'],
    ['554 5.7.1 Spam', true, null, 'espblock'],
  ]
  for (const [text, isOfContent, suppression, reason] of cases) {
    const found = classify(rules, reply(text, { isOfContent }))
    assert.deepEqual([found.suppression, reasonOf(found)], [suppression, reason], text)
  }
  const withCode = classify(rules, reply('550 Unknown user', { enhanced: '5.1.1', isOfContent: true }))
  assert.equal(withCode.suppression, 'hard')
})

test('patterns that occur in a text pass the filter that precedes them', () => {
  const { trials, prefilter } = rules
  const words = source.flatMap(({ samples }) => samples.flatMap((text) => text.toLowerCase().split(' ')))
  const texts = fc.array(fc.oneof(fc.constantFrom(...words), fc.string({ maxLength: 3 })), { maxLength: 25 })
  const property = fc.property(texts, (parts) => {
    const text = parts.join(' ').toLowerCase()
    const found = new Set<number>()
    prefilter(text, (index) => {
      found.add(index)
      return false
    })
    for (const [index, { pattern }] of trials.entries()) {
      assert.ok(found.has(index) || !pattern.isIn(text), `${pattern.source} in ${JSON.stringify(text)}`)
    }
  })
  fc.assert(property, { seed: 5, numRuns: 1_000 })
})

/** CPU of this process, in milliseconds. */
const cpuMs = () => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

const REPLIES_TRIED = 2_000
const REPLY_MAX_MS = 100
/** A reply that takes longer is tried again before it counts. */
const RUNS_MAX = 3

test('hostile replies are bounded in length and work', () => {
  const pieces = source.flatMap(({ patterns, samples }) => [
    ...patterns,
    ...samples.map((text) => text.slice(4, 24)),
  ])
  const all = rules.rules.flatMap(({ patterns }) => patterns)
  const work = (failure: ReturnType<typeof reply>, prepared: string) => {
    const before = cpuMs()
    for (const pattern of all) pattern.isIn(prepared)
    classify(rules, failure)
    return cpuMs() - before
  }
  const usual = reply(`550 ${'The mailbox that you tried to reach is unknown. '.repeat(30)}`)
  const usualText = matchText(usual)
  let [spentMs, usualMs, worstMs] = [0, 0, 0]
  const property = fc.property(
    fc.array(fc.oneof(fc.constantFrom(...pieces), fc.string({ maxLength: 8, unit: anyCharacter })), {
      minLength: 1,
      maxLength: 6,
    }),
    fc.integer({ min: 1, max: 400 }),
    fc.constantFrom(450, 550, 680),
    (parts, times, code) => {
      const text = parts.join(' ').repeat(times).slice(0, 100_000)
      const failure = reply(`${code} ${text}`)
      const prepared = matchText(failure)
      assert.ok(prepared.length <= 1_024)
      let replyMs = REPLY_MAX_MS
      // The first run compiles, and may collect garbage.
      for (let run = 0; run < RUNS_MAX && replyMs >= REPLY_MAX_MS; run++) {
        replyMs = work(failure, prepared)
      }
      spentMs += replyMs
      usualMs += work(usual, usualText)
      worstMs = Math.max(worstMs, replyMs)
    },
  )
  fc.assert(property, { seed: 7, numRuns: REPLIES_TRIED })
  // All patterns, none left out, cost 0.3 ms a reply. Both are measured in turn, on the same machine.
  assert.ok(spentMs < usualMs * 10, `${spentMs} ms for all, ${usualMs} ms for as many usual ones`)
  assert.ok(worstMs < REPLY_MAX_MS, `${worstMs} ms for one`)
})

test('a text that would keep a backtracking engine busy takes time that grows with its length', () => {
  const pattern = compilePattern('(?:a+)+b{2}(?:x|a|a\\w*)*c')
  const costMs = (length: number) => {
    const before = cpuMs()
    assert.equal(pattern.isIn(`c${'a'.repeat(length)}bb`), false)
    assert.equal(pattern.isIn(`c${'a'.repeat(length)}bb${'xa'.repeat(length)}`), false)
    return cpuMs() - before
  }
  // A backtracking engine does not end within a minute at 14; here it takes 40 ms.
  assert.ok(costMs(1_000_000) < 5_000)
})

test('patterns find what regular expressions find', () => {
  const texts = fc.array(
    fc.constantFrom(
      ...source.flatMap(({ samples }) => samples.flatMap((text) => text.toLowerCase().split(' '))),
      ...['a', '_', '.', '-', '\n', '5.7.1', 'ptr', '4.7.26', '[ph01]', 'x'.repeat(41)],
    ),
    { minLength: 1, maxLength: 30 },
  )
  const patterns = source.flatMap(({ patterns }) => patterns)
  const more = [
    'PTR',
    'a\\.b',
    'A[A-F]',
    '\\SX',
    '^a|b$',
    '[^a-f\\d]x{2,3}',
    '\\Bx\\B',
    '(a|bc)*d',
    '[\\w.-]+@x',
    'a{2,}',
    '\\S\\s\\D\\W',
    '(?<n>a)+?x',
  ]
  const compiled = [...patterns, ...more].map((text) => ({
    text,
    own: compilePattern(text),
    reference: new RegExp(text, 'is'),
  }))
  const property = fc.property(texts, fc.constantFrom(' ', ''), (words, by) => {
    const text = words.join(by)
    for (const { own, reference, text: name } of compiled) {
      const expected = reference.test(text)
      assert.equal(own.isIn(text), expected, `${name} in ${JSON.stringify(text)}`)
    }
  })
  fc.assert(property, { seed: 11, numRuns: 1_500 })
})

test('patterns without a bound, or that match everything, are refused', () => {
  const refused = [
    ...[
      '',
      'a(?=b)',
      '(?<!a)b',
      '(a)\\1',
      'a*?',
      'a++',
      '*a',
      'a{3,2}',
      'a{1001}',
      '(?:x{1000}){2}',
      'a{999}b{999}c{9}',
      '^|a',
      '$',
      '\\B',
      '(a',
      'a)',
      '[a',
    ],
    ...['a*', 'a|', '\\b', '(?:(?:a{500}){500}){9}', '[z-a]', '\\', 'x'.repeat(501), '('.repeat(30)],
  ]
  for (const text of refused) assert.throws(() => compilePattern(text), PatternSyntaxError, text)
})
