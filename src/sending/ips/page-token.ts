/** Tokens of pages that follow an item: its key, in letters that need no escape. */
import { invalidFormat } from '../../base/values.ts'
import { parsedParam } from '../../platform/http/request/inputs.ts'

const TOKEN = /^[A-Za-z0-9_-]{1,128}$/

/** '' for the first page. */
export const PAGE_PARAM = parsedParam('Token of a page', (params, name) => {
  const token = params.text(name)
  if (token === undefined) return ''
  const key = TOKEN.test(token) ? Buffer.from(token, 'base64url').toString() : ''
  if (key === '' || !/^[\x20-\x7e]+$/.test(key)) throw invalidFormat(name, token)
  return key
})

export const writePageToken = (key: string): string => Buffer.from(key).toString('base64url')
