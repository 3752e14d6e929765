/** R31 in short: random SMTP clients. The long form is the drill. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededNumbers } from '../support/random.ts'
import { converse, randomLines, sessionPieces, speak } from '../support/smtp-fuzz.ts'
import { startFuzzRig } from '../support/smtp-fuzz-rig.ts'
import { temporaryFolder } from '../support/stores.ts'

const DIALOGUES = 10_000
const SESSIONS = 300
const AT_A_TIME = 10

test('R31: in 10,000 random dialogues nothing throws, and content follows only a recipient', () => {
  const random = seededNumbers(31)
  let lines = 0
  let contents = 0
  for (let done = 0; done < DIALOGUES; done++) {
    const dialogued = speak(randomLines(random), random)
    lines += dialogued.lines
    contents += dialogued.contents
  }
  assert.ok(lines > 5 * DIALOGUES, `${lines} lines`)
  assert.ok(contents > DIALOGUES / 20, `content was asked for ${contents} times`)
})

test('R31: 300 random clients over sockets: no internal error, no content without a recipient, nothing left', async (t) => {
  const rig = await startFuzzRig(await temporaryFolder(t))
  t.after(() => rig.close())
  const random = seededNumbers(310)
  for (let done = 0; done < SESSIONS; done += AT_A_TIME) {
    const clients = Array.from({ length: AT_A_TIME }, () => sessionPieces(random))
    await Promise.all(clients.map((pieces) => converse(rig, pieces)))
  }
  assert.deepEqual(rig.faults, [])
  assert.equal(rig.wrong, 0)
  assert.ok(rig.taken > 0, 'no message was taken at all')
  assert.deepEqual(await rig.spooled(), [])
})
