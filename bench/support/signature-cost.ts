/** Prints the CPU microseconds of one RSA-2048 signature. Argument: the number of signatures. */
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'

const count = Number(process.argv[2])
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const text = randomBytes(600) // about the size of a signed header
for (let at = 0; at < count / 10; at++) sign('sha256', text, privateKey)
const before = process.cpuUsage()
for (let at = 0; at < count; at++) sign('sha256', text, privateKey)
const { user, system } = process.cpuUsage(before)
process.stdout.write(`${(user + system) / count}\n`)
