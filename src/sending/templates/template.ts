/** Templates and their versions as the rest of the service sees them, and what their names may be. */

import { ForeignJsonError, parseForeignJson } from '../../base/foreign-json.ts'
import { BadRequest } from '../../base/process/errors.ts'
import { isPlainObject } from '../../base/values.ts'

/** Where a template belongs: to one domain, or (null) to the account and so to all of its domains. */
export interface TemplateScope {
  accountId: string
  domain: { id: string; name: string } | null
}

export interface Template {
  id: string
  name: string
  description: string
  createdBy: string
  createdAt: number
}

/** A version without its content, as lists show it. */
export interface VersionSummary {
  id: string
  tag: string
  /** The MJML source of the content; empty if there is none. */
  mjml: string
  comment: string
  active: boolean
  createdAt: number
}

export interface Version extends VersionSummary, VersionContent {
  sample: Sample
}

export interface VersionContent {
  /** Handlebars in HTML. */
  content: string
  mjml: string
  headers: TemplateHeaders
}

/** From, Subject and Reply-To, in this spelling, to Handlebars text. */
export type TemplateHeaders = Readonly<Record<string, string>>

/** Variables for previews and tests of a version, which its authors share. No mail is rendered with them. */
export type Sample = Readonly<Record<string, unknown>>

export const VERSIONS_MAX = 40
export const TEMPLATES_MAX = 100
/** Names and tags appear in paths and log lines. */
const NAME_LENGTH_MAX = 256
/** Descriptions, authors and comments: a page of text, shown in lists. */
export const NOTE_LENGTH_MAX = 4_000
/** The longest header field that a mail can hold in one line (RFC 5322 §2.1.1), before rendering. */
const HEADER_LENGTH_MAX = 998
/** JSON of a version's sample: variables of one message, several times what they usually take. */
export const SAMPLE_BYTES_MAX = 64 * 1024
const HEADER_NAMES = ['From', 'Subject', 'Reply-To']

/** A name or tag in its stored form, lower case. @throws BadRequest `Invalid parameter: <parameter> is invalid` */
export function storedName(parameter: 'name' | 'tag', value: string): string {
  const name = value.toLowerCase()
  if (name.length > NAME_LENGTH_MAX || /[/\p{Cc}\p{Cs}]|^\.{1,2}$/u.test(name)) {
    throw new BadRequest(`Invalid parameter: ${parameter} is invalid`)
  }
  return name
}

/** Reads the `headers` parameter. @throws BadRequest for anything but a JSON object of known names and texts */
export function readTemplateHeaders(text: string): TemplateHeaders {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(jsonObject('headers', text))) {
    const known = HEADER_NAMES.find((candidate) => candidate.toLowerCase() === name.toLowerCase())
    if (known === undefined) {
      throw new BadRequest(`Invalid parameter: header ${name.slice(0, NAME_LENGTH_MAX)} is not supported`)
    }
    if (typeof value !== 'string' || value.length > HEADER_LENGTH_MAX) throw invalid('headers')
    if (value !== '') headers[known] = value
  }
  return headers
}

/** Reads the `sample` parameter. @throws BadRequest for anything but a JSON object of a limited size */
export function readSample(text: string): Sample {
  const sample = jsonObject('sample', text)
  if (Buffer.byteLength(JSON.stringify(sample)) > SAMPLE_BYTES_MAX) {
    throw new BadRequest(`sample is too large, max size is ${SAMPLE_BYTES_MAX / 1024}KB`)
  }
  return sample
}

/** @throws BadRequest */
function jsonObject(parameter: string, text: string): Record<string, unknown> {
  try {
    const value = parseForeignJson(text)
    if (isPlainObject(value)) return value
  } catch (error) {
    throw error instanceof ForeignJsonError ? invalid(parameter, error) : error
  }
  throw invalid(parameter)
}

const invalid = (parameter: string, cause?: unknown) =>
  new BadRequest(`Invalid parameter: ${parameter}`, { cause })
