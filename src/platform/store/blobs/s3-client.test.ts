import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { StoreUnavailable } from '../store.ts'
import { createS3Client, sign } from './s3-client.ts'

// The examples of AWS, "Authenticating Requests: Using the Authorization Header (AWS Signature Version 4)".
const OPTIONS = {
  endpoint: 'https://examplebucket.s3.amazonaws.com',
  region: 'us-east-1',
  bucket: 'examplebucket',
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
  sessionToken: null,
}
const AT = new Date('2013-05-24T00:00:00Z')
const hash = (text: string) => createHash('sha256').update(text).digest('hex')

test('a GET is signed as in the example', () => {
  const { authorization } = sign(OPTIONS, {
    method: 'GET',
    path: '/test.txt',
    host: 'examplebucket.s3.amazonaws.com',
    bodyHash: hash(''),
    at: AT,
    headers: { range: 'bytes=0-9' },
  })
  assert.equal(
    authorization,
    'AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, ' +
      'SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, ' +
      'Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
  )
})

test('a PUT is signed as in the example, with the hash of its body', () => {
  const { authorization } = sign(OPTIONS, {
    method: 'PUT',
    path: '/test%24file.text',
    host: 'examplebucket.s3.amazonaws.com',
    bodyHash: hash('Welcome to Amazon S3.'),
    at: AT,
    headers: { date: 'Fri, 24 May 2013 00:00:00 GMT', 'x-amz-storage-class': 'REDUCED_REDUNDANCY' },
  })
  assert.match(
    authorization ?? '',
    /Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd$/,
  )
})

/** The bytes of an object as a server gives it. */
async function read(t: TestContext, answer: RequestListener): Promise<string> {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  let text = ''
  await createS3Client({ ...OPTIONS, endpoint: `http://127.0.0.1:${port}` }).get('key', async (bytes) => {
    text = ''
    for await (const piece of bytes) text += String(piece)
  })
  return text
}

test('an object is taken only in its whole length', async (t) => {
  assert.equal(
    await read(t, (_request, response) => response.setHeader('content-length', 5).end('whole')),
    'whole',
  )
  let tries = 0
  const cut: RequestListener = (_request, response) => {
    tries++
    response.setHeader('content-length', 5)
    response.write('cut', () => response.destroy())
  }
  await assert.rejects(read(t, cut), StoreUnavailable)
  assert.equal(tries, 3, 'what was cut is fetched again')
  const endless: RequestListener = (_request, response) => {
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(65_536)));
    }
    response.on('drain', more)
    more()
  }
  await assert.rejects(read(t, endless), StoreUnavailable)
})
