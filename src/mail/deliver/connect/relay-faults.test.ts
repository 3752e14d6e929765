import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refusedBy, SmtpFailure } from '../../../protocols/smtp/failure.ts'
import { relayFaultOf, relayFaultOfReply } from './relay-faults.ts'

test('replies of relays that take no more mail, and replies about one message', () => {
  for (const [code, text] of [
    [454, '4.3.0 Throttling failure: Daily message quota exceeded.'],
    [454, '4.3.0 Throttling failure: Maximum sending rate exceeded.'],
    [550, "5.1.90 Your message can't be sent because you've reached your daily limit for message recipients"],
    [554, '5.2.0 STOREDRV.Submission; Submission quota exceeded'],
    [550, '5.4.5 Daily user sending limit exceeded. For more information on Gmail sending limits go to'],
    [451, 'Authentication failed: Maximum credits exceeded'],
    [550, '5.7.708 Service unavailable. Access denied, traffic not accepted from this IP'],
    [530, '5.7.0 Authentication Required'],
  ] as const)
    assert.deepEqual(relayFaultOfReply(code, text), { isSure: true, mayMove: true }, text)
  assert.equal(relayFaultOfReply(421, '4.7.0 Try again later')?.isSure, false)
  for (const [code, text] of [
    [552, "5.2.2 The recipient's mailbox is over its quota"],
    [452, '4.2.2 Mailbox full: storage quota exceeded'],
    [450, '4.2.1 The user you are trying to contact is receiving mail too quickly'],
    [550, '5.1.1 No such user'],
    [554, '5.7.1 Message rejected: Email address is not verified'],
    [552, '5.3.4 Message size exceeds the limit: daily maximum message size limit exceeded'],
    [552, '5.3.4 Message size limit exceeded'],
    [450, '4.2.1 The receiving rate limit of this mailbox is exceeded'],
    [250, 'Daily message quota exceeded'],
    // What a sender has written.
    [550, '5.1.1 <daily-quota-exceeded@example.net>: Recipient address rejected: User unknown'],
    [550, '5.1.1 <"daily sending quota exceeded"@example.net>: user unknown'],
    [550, '5.1.8 <bounce@daily.sending-quota-exceeded.example>: Sender address rejected: Domain not found'],
    [550, 'No such user daily-sending-limit-reached@example.net'],
    [550, '5.1.2 Host daily-sending-limit-reached.example not found'],
    [550, '5.1.1 <5.1.90@example.net>: user unknown'],
    [554, "5.7.1 Spam: subject 'Daily sending quota exceeded'"],
    [
      554,
      'Message rejected: Email address is not verified. The following identities failed the check in region EU-WEST-1: Daily sending quota exceeded <a@example.com>',
    ],
  ] as const)
    assert.equal(relayFaultOfReply(code, text), null, text)
})

test('what may have been accepted goes to no other relay', () => {
  const lost = new SmtpFailure('dot', { reason: 'closed', message: 'closed' }, true)
  assert.deepEqual(relayFaultOf(lost), { isSure: false, mayMove: false })
  const before = new SmtpFailure('rcpt', { reason: 'closed', message: 'closed' })
  assert.deepEqual(relayFaultOf(before), { isSure: false, mayMove: true })
  const reply = { code: 535, enhanced: '5.7.8', text: 'bad', lines: ['5.7.8 bad'] }
  assert.equal(relayFaultOf(new SmtpFailure('auth', refusedBy(reply)))?.isSure, true)
  assert.equal(relayFaultOf(new SmtpFailure('body', { reason: 'message', message: 'gone' })), null)
})
