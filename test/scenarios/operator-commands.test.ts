/** What operators do daily, without a browser: ten tasks, each in one or two commands over a real service. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { commandEnvironment } from '../support/command.ts'
import { runCases } from '../support/command-cases.ts'
import { MAIN } from '../support/program.ts'
import { eventually, startTestService } from '../support/service.ts'
import { createSink } from '../support/smtp-sink.ts'
import { temporaryFolder } from '../support/stores.ts'

async function startOperated(t: TestContext) {
  const sink = await createSink()
  t.after(() => sink.close())
  sink.on('RCPT TO', '450 4.2.0 come back later')
  const service = await startTestService(t, { SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}` })
  const env = { SENDWRIGHT_DATA: service.config.dataFolder }
  return {
    service,
    sink,
    env,
    /** Runs the lines one after the other; each must succeed. */
    async run(...lines: string[]) {
      const results = await runCases(
        env,
        lines.map((line) => ({ args: line.split(' ') })),
      )
      for (const [at, { code, err }] of results.entries()) assert.equal(code, 0, `${lines[at]}: ${err}`)
      return results.map(({ out }) => out)
    },
  }
}

type Operated = Awaited<ReturnType<typeof startOperated>>

/** Sends to somebody whose server defers it, and waits until it did. */
async function deferred({ service }: Operated, to: string): Promise<string> {
  const { id } = (await service.send({ to, 'o:tag': 'bill' })).body
  await eventually(`deferred: ${to}`, async () => {
    const events = await service.events(`?event=failed&recipient=${encodeURIComponent(to)}`)
    return events[0]
  })
  return id
}

test('ten tasks of an operator without a browser', async (t) => {
  const rig = await startOperated(t)
  const { service, sink, run, env } = rig
  const { domain } = service
  const folder = await temporaryFolder(t)
  const messageId = await deferred(rig, 'slow@one.example')
  await deferred(rig, 'slow@two.example')

  await t.test('why a message did not arrive', async () => {
    const [out = ''] = await run(`trace ${messageId}`)
    assert.match(out, /^slow@one\.example +queued +1 .*450 "4\.2\.0 come back later"; the next one follows/m)
    assert.match(out, /failed +slow@one\.example {2}temporary: .*450 4\.2\.0 come back later/)
    assert.match(out, /> RCPT TO:<slow@one\.example>/)
  })

  await t.test('what waits for a receiver, and why', async () => {
    const [out = '', lanes = ''] = await run(
      'queue list --recipient-domain one.example --reason deferred',
      'queue',
    )
    assert.deepEqual(
      out.split('\n').map((line) => line.includes('slow@one.example')),
      [false, true, false],
    )
    assert.match(lanes, /^any\/relay:default +\S.* 2 +0 +2 +0 /m)
  })

  await t.test('hold the mail of a tag, and release it', async () => {
    assert.deepEqual(
      await run(
        'queue hold --tag bill --dry-run',
        'queue hold --tag bill',
        'queue list --reason paused --limit 1',
      ),
      ['2 would be changed; nothing was.\n', '2 changed.\n', (await run('queue list --limit 1'))[0]],
    )
    assert.deepEqual(await run('queue release --tag bill'), ['2 changed.\n'])
  })

  await t.test('give up what cannot be delivered', async () => {
    assert.deepEqual(await run('queue expire --recipient-domain two.example'), ['1 changed.\n'])
    const query = '?event=failed&severity=permanent&recipient=slow@two.example'
    const [event] = await eventually('expired', async () => {
      const events = await service.events(query)
      return events.length > 0 ? events : null
    })
    assert.equal(event?.['reason'], 'old')
  })

  await t.test('send again once the receiver is well', async () => {
    sink.clearRules()
    const [counted, done] = await run(
      `queue retry --message ${messageId} --dry-run`,
      `queue retry --message ${messageId}`,
    )
    assert.deepEqual([counted, done], ['1 would be changed; nothing was.\n', '1 changed.\n'])
    await sink.waitFor(1)
  })

  await t.test('watch what happens now', async () => {
    const args = ['events', '--follow', '--event', 'delivered', '--recipient', 'seen@one.example', '--json']
    const child = spawn(process.execPath, [MAIN, ...args], { env: { ...commandEnvironment(), ...env } })
    t.after(() => child.kill())
    let out = ''
    child.stdout.on('data', (bytes: Buffer) => {
      out += bytes
    })
    // It prints events from its start on, so more are sent until one is seen.
    await eventually('an event', async () => {
      await service.send({ to: 'seen@one.example' })
      return out.includes('\n')
    })
    const [first = ''] = out.split('\n')
    assert.deepEqual(
      [JSON.parse(first).event, JSON.parse(first).recipient],
      ['delivered', 'seen@one.example'],
    )
    await service.restart()
    await service.send({ to: 'seen@one.example' })
    await eventually('it has all since it began, once each', async () => {
      const lines = out.slice(0, out.lastIndexOf('\n')).split('\n')
      const printed = lines.map((line) => String(JSON.parse(line).id)).sort()
      const kept = (await service.events('?event=delivered&recipient=seen@one.example&limit=300'))
        .map((event) => String(event['id']))
        .sort()
      const began = kept.indexOf(printed[0] ?? '')
      return printed.length > 1 && printed.join() === kept.slice(began).join()
    })
    child.kill('SIGINT')
    await once(child, 'exit')
    const [last = ''] = await run('events --recipient seen@one.example --limit 2')
    assert.match(last, /^\S+ \S+ {2}(accepted|delivered) +seen@one\.example/)
  })

  await t.test('add a domain and see what to publish', async () => {
    const [, zone = '', list = ''] = await run(
      'domains add shop.example',
      'domains dns shop.example --zone',
      'domains',
    )
    assert.match(zone, /_domainkey\.shop\.example\./)
    assert.match(list, /^shop\.example +unverified/m)
    const [verified = '', dns = '', keys = ''] = await run(
      'domains verify shop.example',
      'domains dns shop.example',
      'domains keys shop.example',
    )
    assert.match(verified, /^\w+ +MX +shop\.example +\S+$/m)
    assert.match(dns, /^dkim +TXT +\S+\._domainkey\.shop\.example/m)
    assert.match(keys, /shop\.example +does not sign +unknown/)
  })

  await t.test('import suppressions, and get the list as a file', async () => {
    const file = join(folder, 'bounces.csv')
    writeFileSync(file, 'address,code\ngone@example.org,550\n+odd@example.org,551\n')
    await run(`suppressions import bounces ${file} --domain ${domain}`)
    await eventually('imported', async () => {
      const { body } = await service.call('GET', `/v3/${domain}/bounces`)
      return body.items.length === 2
    })
    const [csv = '', removed, left = ''] = await run(
      `suppressions export bounces --domain ${domain}`,
      `suppressions remove bounces gone@example.org --domain ${domain}`,
      `suppressions list bounces --domain ${domain}`,
    )
    assert.match(
      csv,
      /^address,code,error,created_at\r\n'\+odd@example\.org,551,,"[^"]+"\r\ngone@example\.org,550,/,
    )
    assert.equal(removed, 'Bounced address has been removed\n')
    assert.deepEqual(
      left.split('\n').map((line) => line.split(' ')[0]),
      ['ADDRESS', '+odd@example.org', ''],
    )
  })

  await t.test('texts of others do not act on the terminal', async () => {
    const form = { address: 'x@example.net', error: '\u001b[2J gone' }
    assert.equal((await service.call('POST', `/v3/${domain}/bounces`, { form })).status, 200)
    const [list = ''] = await run(`suppressions list bounces --domain ${domain} --term x@`)
    assert.match(list, /\\u001b\[2J gone$/m)
  })

  await t.test('which route received mail meets, and whether a relay takes mail', async () => {
    const form = { expression: 'match_recipient("help@.*")', action: 'store()', description: 'help desk' }
    assert.equal((await service.call('POST', '/v3/routes', { form })).status, 200)
    const [route = '', dialogue = ''] = await run(
      `routes test help@${domain}`,
      `relays test default --from post@${domain} --to ann@one.example`,
    )
    assert.match(route, /help desk/)
    assert.match(dialogue, /< 250 2\.0\.0 Ok: queued.*\nTLS was not used/)
  })

  await t.test('look at the whole, here and from another machine', async () => {
    const [top = ''] = await run('top')
    assert.match(
      top,
      /^sendwright \d.* {2}relay {2}.* UTC\nToday: accepted \d+, delivered \d+.*\nWaiting: 0, /,
    )
    const key = join(folder, 'key')
    writeFileSync(key, service.key)
    const [there = ''] = await run(`domains --service ${service.url} --key-file ${key}`)
    assert.match(there, /^shop\.example/m)
  })
})
