/** Secrets of cookies and links: 256 random bits. They are stored as keyed digests only. */
import { randomBytes } from 'node:crypto'
import { withoutPod, withPod } from '../pods/pod.ts'

const BYTES = 32
const PATTERN = /^[A-Za-z0-9_-]{43}$/

/** `pod`: of the store that will know it. */
export const newSecret = ({ pod }: { pod: string | null }): string =>
  withPod(pod, randomBytes(BYTES).toString('base64url'))

/** False: no `newSecret` returned it, and no digest need be looked for. */
export const isSecret = (text: string): boolean => PATTERN.test(withoutPod(text))
