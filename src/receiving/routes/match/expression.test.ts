import assert from 'node:assert/strict'
import { test } from 'node:test'
import { evaluate, MailHeaders, parseExpression, type Verdict } from './expression.ts'
import { PatternWork, TooMuchWork, WorkTurns } from './pattern-work.ts'

const HEADERS: Record<string, string[]> = {
  subject: ['Hello from Köln'],
  received: ['from a', 'from b by c'],
  'x-long': ['a'.repeat(100_000)],
}
const newWork = () => new PatternWork(new WorkTurns())
const newHeaders = (work: PatternWork) => new MailHeaders((name) => HEADERS[name] ?? [], work)
const verdict = (
  expression: string,
  recipient = 'Bob+Sales@Example.com',
  isFirstMatch = true,
): Promise<Verdict> => {
  const work = newWork()
  return evaluate(parseExpression(expression), { recipient, headers: newHeaders(work), isFirstMatch, work })
}

const TRUE = [
  'match_recipient(".*@example.com")',
  "  MATCH_RECIPIENT ( 'bob' ) ",
  'match_recipient("^bob\\+(.*)@example\\.com$")',
  'match_recipient("(?i)BOB\\+[A-Z]+@")',
  'match_recipient("bob\\x2b\\w{5}@")',
  'match_recipient("b[^A-N]b")',
  'match_recipient("(?:alice|bob).+?@(?P<Domain>[\\w.]+)\\Z")',
  'match_header("subject", "KÖLN")',
  'match_header("Subject", "hello.*k[À-Þ]ln$")',
  'match_header("received", "by c")',
  'match_recipient("alice") or match_recipient("bob")',
  'not match_recipient("alice") and not match_header("x-none", ".*")',
  'match_recipient("x") and match_recipient("y") or match_recipient("bob")',
  'match_recipient("bob") or match_recipient("x") and match_recipient("y")',
  '(match_recipient("x") or catch_all()) and match_recipient("bob")',
  'catchall()',
  `match_recipient("${'(?:'.repeat(200)}bob${')'.repeat(200)}")`,
  "match_header('subject', 'fro\\'?m')",
]
const FALSE = [
  'match_recipient("sales")',
  'match_recipient("example.com")',
  'match_header("x-none", ".*")',
  'match_header("subject", "^from")',
  'match_recipient("bob") and match_header("subject", "bye")',
  'not (match_recipient("bob") or match_recipient("x"))',
]

test('expressions are true or false as Python reads their patterns', async () => {
  for (const expression of TRUE) assert.equal((await verdict(expression)).kind, 'true', expression)
  for (const expression of FALSE) assert.equal((await verdict(expression)).kind, 'false', expression)
  assert.equal((await verdict('catch_all()', 'a@b.example', false)).kind, 'false')
})

test('captures are those of the first call that is true, as they were written', async () => {
  const captured = async (expression: string) => {
    const found = await verdict(expression)
    return found.kind === 'true' ? found.captures : null
  }
  assert.deepEqual(await captured('match_recipient("(?P<who>[a-z]+)\\+(sales)?(x)?@")'), {
    numbered: ['Bob+Sales@', 'Bob', 'Sales', null],
    named: { who: 'Bob' },
  })
  const second = 'match_recipient("x(.)") or match_header("subject", "from (.*)") or match_recipient("(b)")'
  assert.equal((await captured(second))?.numbered[1], 'Köln')
  const both = await captured('match_recipient("(b)ob") and match_header("subject", "(H)")')
  assert.equal(both?.numbered[1], 'B')
  assert.equal(await captured('not match_recipient("(x)")'), null)
})

test('before the headers are known, a call on them may be true', async () => {
  const kind = async (expression: string) => {
    const subject = { recipient: 'bob@example.com', headers: null, isFirstMatch: true, work: newWork() }
    return (await evaluate(parseExpression(expression), subject)).kind
  }
  assert.equal(await kind('match_header("subject", "x")'), 'maybe')
  assert.equal(await kind('not match_header("subject", "x")'), 'maybe')
  assert.equal(await kind('match_recipient("bob") and match_header("subject", "x")'), 'maybe')
  assert.equal(await kind('match_recipient("alice") and match_header("subject", "x")'), 'false')
  assert.equal(await kind('match_recipient("bob") or match_header("subject", "x")'), 'true')
})

const INVALID: [expression: string, reason: RegExp][] = [
  ['', /unexpected end/],
  ['match_recipient(".*"', /"\)" is expected/],
  ['match_recipient(.*)', /unexpected "."|string is expected/],
  ['match_recipient("a) ', /string is not closed/],
  ['match_header("subject")', /"," is expected/],
  ['match_body("x")', /unknown function/],
  ['catch_all() catch_all()', /unexpected "catch_all"/],
  ['and', /"\(" is expected/],
  ['match_recipient("a") xor catch_all()', /unexpected "xor"/],
  ['match_recipient("(")', /missing closing/],
  ['match_recipient(")")', /missing \(/],
  ['match_recipient("[a")', /missing closing \]/],
  ['match_recipient("[z-a]")', /range/],
  ['match_recipient("a(?=b)")', /look-ahead/],
  ['match_recipient("(?<!a)b")', /look-ahead/],
  ['match_recipient("(a)\\1")', /back references/],
  ['match_recipient("(?P<a>x)(?P=a)")', /back references/],
  ['match_recipient("(?(1)a|b)")', /conditionals/],
  ['match_recipient("\\q")', /unknown escape/],
  ['match_recipient("**")', /repetition|missing argument/],
  // 3,000 characters that would compile to 800,000 instructions.
  [`match_recipient("${'x{0,1000}'.repeat(300)}")`, /too large/],
  [`match_recipient("${'((a{99}){99}){99}'}")`, /too large/],
  [`match_recipient("${'(a|b)'.repeat(750)}")`, /too large/],
  [`${'('.repeat(60)}catch_all()${')'.repeat(60)}`, /levels of brackets/],
  [`catch_all()${' or catch_all()'.repeat(100)}`, /more than 100 calls/],
  [`match_recipient("${'a'.repeat(5000)}")`, /4096/],
  [`${'match_header("x", "(?:a?b?){300}") or '.repeat(10)}catch_all()`, /more than 6000 instructions/],
]

test('invalid expressions are refused with a reason', () => {
  for (const [expression, reason] of INVALID)
    assert.throws(() => parseExpression(expression), reason, expression.slice(0, 60))
})

test('a pattern that may take long on a text is false, and is reported', async () => {
  let reported = 0
  const subject = () => {
    const work = newWork()
    const tooCostly = () => void reported++
    return { recipient: 'a@b.example', headers: newHeaders(work), isFirstMatch: true, work, tooCostly }
  }
  const costly = parseExpression('match_header("x-long", "(?:(\\w?)(a|b)?){90}$")')
  assert.equal((await evaluate(costly, subject())).kind, 'false')
  assert.equal(reported, 1)
  assert.equal((await evaluate(parseExpression('match_header("x-long", "a$")'), subject())).kind, 'true')
  assert.equal(reported, 1)
})

test('the patterns of one mail have a bound together, and each is searched for once', async () => {
  const values = Array.from({ length: 20 }, () => 'a'.repeat(200))
  const searched = (patterns: readonly string[]) => {
    const work = newWork()
    const headers = new MailHeaders(() => values, work)
    const calls = patterns.map((pattern) => parseExpression(`match_header("x", "${pattern}")`))
    const subject = { recipient: 'a@b.example', headers, isFirstMatch: true, work }
    return Promise.all(calls.map((call) => evaluate(call, subject)))
  }
  const costly = (at: number) => `(?:a?b?){300}z${at}`
  const many = Array.from({ length: 10 }, (_, at) => costly(at))
  await assert.rejects(searched(many), TooMuchWork)
  const verdicts = await searched(Array(100).fill(costly(1)))
  assert.ok(verdicts.every(({ kind }) => kind === 'false'))
})
