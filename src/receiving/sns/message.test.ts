/** Names, hosts and signed texts of SNS messages, by tables. */
import assert from 'node:assert/strict'
import { createPublicKey } from 'node:crypto'
import { test } from 'node:test'
import { createSns, subscription } from '../../../test/support/sns.ts'
import { isAtOrigin, isCertificateOf, isSigned, originOfTopic, signedText } from './message.ts'

test('the signed text has names and values in their order, a subject only where there is one', () => {
  const common = {
    MessageId: '4d4dc071-ddbf-465d-bba8-08f81c89da64',
    TopicArn: 'arn:aws:sns:us-east-2:123456789012:s4-MySNSTopic-1G1WEFCOXTC0P',
    Timestamp: '2019-01-31T04:37:04.321Z',
    SignatureVersion: '1',
    Signature: '',
    SigningCertURL: '',
    Token: '233',
    SubscribeURL: 'https://sns.us-east-2.amazonaws.com/?Action=ConfirmSubscription',
  } as const
  // The examples of the documentation.
  assert.equal(
    signedText({ ...common, Type: 'Notification', Message: 'My Test Message', Subject: 'My subject' }),
    `Message\nMy Test Message\nMessageId\n${common.MessageId}\nSubject\nMy subject\nTimestamp\n${common.Timestamp}\nTopicArn\n${common.TopicArn}\nType\nNotification\n`,
  )
  for (const Type of ['SubscriptionConfirmation', 'UnsubscribeConfirmation'] as const) {
    assert.equal(
      signedText({ ...common, Type, Message: 'My Test Message', Subject: 'not signed' }),
      `Message\nMy Test Message\nMessageId\n${common.MessageId}\nSubscribeURL\n${common.SubscribeURL}\nTimestamp\n${common.Timestamp}\nToken\n${common.Token}\nTopicArn\n${common.TopicArn}\nType\n${Type}\n`,
    )
  }
  const { Token, SubscribeURL, ...plain } = common
  assert.doesNotMatch(signedText({ ...plain, Type: 'Notification', Message: 'x' }), /Subject|Subscribe|Token/)
})

test('both versions of the signature verify, over any characters, and no other text or version does', () => {
  const sns = createSns()
  const key = createPublicKey(sns.signer.key)
  for (const SignatureVersion of ['1', '2'] as const) {
    const other = SignatureVersion === '1' ? '2' : '1'
    for (const Message of ['Ünïcödé \u{1f4e8}\n"x"\\', '']) {
      const message = sns.message({ SignatureVersion, Message })
      assert.ok(isSigned(message, key))
      assert.ok(!isSigned({ ...message, Message: `${Message} ` }, key))
      assert.ok(!isSigned({ ...message, SignatureVersion: other }, key))
      // What is after one value is not before the next.
      assert.ok(!isSigned({ ...message, Message: '', MessageId: `${Message}${message.MessageId}x` }, key))
    }
    const confirmation = subscription(sns, { SignatureVersion })
    assert.ok(isSigned(confirmation, key))
    assert.ok(!isSigned({ ...confirmation, Type: 'UnsubscribeConfirmation' }, key))
    assert.ok(!isSigned({ ...confirmation, SubscribeURL: `${confirmation.SubscribeURL}x` }, key))
  }
  for (const Signature of ['', 'x', '!', 'A'.repeat(1_024)])
    assert.ok(!isSigned({ ...sns.message(), Signature }, key))
})

test('a topic names the one host of its region', () => {
  const origins: [arn: string, origin: string | null][] = [
    ['arn:aws:sns:eu-west-1:123456789012:feedback', 'https://sns.eu-west-1.amazonaws.com'],
    ['arn:aws:sns:ap-southeast-3:123456789012:a_b-C9', 'https://sns.ap-southeast-3.amazonaws.com'],
    ['arn:aws-cn:sns:cn-north-1:123456789012:x', 'https://sns.cn-north-1.amazonaws.com.cn'],
    ['arn:aws-us-gov:sns:us-gov-west-1:123456789012:x', 'https://sns.us-gov-west-1.amazonaws.com'],
    ['arn:aws:sns:eu-west-1:123456789012:x.fifo', null],
    ['arn:aws:sns:eu-west-1:123456789012:x:subscription', null],
    ['arn:aws:sqs:eu-west-1:123456789012:x', null],
    ['arn:aws:sns:evil.example/:123456789012:x', null],
    ['arn:aws:sns:evil:123456789012:x', null],
    ['arn:aws:sns::123456789012:x', null],
    ['arn:aws:sns:eu-west-1:123456789012:x\n', null],
    ['', null],
  ]
  for (const [arn, origin] of origins) assert.equal(originOfTopic(arn), origin, arn)
})

test('certificates and confirmations are at that host only', () => {
  const origin = 'https://sns.eu-west-1.amazonaws.com'
  const certificates: [url: string, isGood: boolean][] = [
    [`${origin}/SimpleNotificationService-f3ecfb7224c7233fe7bb5f59f96de52f.pem`, true],
    // Other ways to write the same.
    [`${origin}:443/a.pem`, true],
    [`HTTPS://SNS.eu-west-1.amazonaws.com/a.pem`, true],
    [`${origin}\\a.pem`, true],
    [`${origin}/a.pem?`, false],
    [`${origin}/a.pem#`, false],
    [`${origin}/a/b.pem`, false],
    [`${origin}/..%2fa.pem`, false],
    [`https://user@sns.eu-west-1.amazonaws.com/a.pem`, false],
    [`${origin}.evil.example/a.pem`, false],
    [`https://evil.example/${origin}/a.pem`, false],
    [`${origin}/.pem`, false],
    ['', false],
  ]
  for (const [url, isGood] of certificates) assert.equal(isCertificateOf(url, origin), isGood, url)
  const confirmations: [url: string, isGood: boolean][] = [
    [`${origin}/?Action=ConfirmSubscription&TopicArn=x&Token=y`, true],
    [`${origin}:8443/`, false],
    [`${origin}@evil.example/`, false],
    [`${origin}.evil.example/`, false],
    [origin.replace('https', 'http'), false],
    ['', false],
  ]
  for (const [url, isGood] of confirmations) assert.equal(isAtOrigin(url, origin), isGood, url)
})
