/**
 * SendGrid: the lists of suppressions as CSV from its pages or as JSON from its API, contacts as CSV, and templates as JSON
 * (`GET /v3/templates/{id}`). A list does not say which one it is, so the caller does.
 */
import { type Entry, type Item, neededText, objectOf, textOf, Unreadable } from '../entry.ts'
import type { InputRecord } from '../input-file.ts'
import { fromSendgrid } from '../template-syntax.ts'
import {
  addressIn,
  columnsOf,
  contactEntries,
  itemsOf,
  itemsOrReason,
  replyCode,
  type Shape,
  type ShapeContext,
  suppression,
  templateItem,
  textIn,
} from './shape.ts'

export const SENDGRID: Shape = {
  contents: ['bounces', 'invalid', 'spam', 'unsubscribes', 'groups', 'contacts', 'templates'],
  lists: ['result', 'templates', 'suppressions'],
  items(record, context) {
    const { content } = context
    const { id, email } = (record.value ?? {}) as Record<string, unknown>
    if (content === 'templates')
      return itemsOrReason(record, 'template', id, () => templates(record, context))
    const kind =
      content === 'spam' ? 'complaint' : ['bounces', 'invalid'].includes(content) ? 'bounce' : 'unsubscribe'
    return itemsOf(record, content === 'contacts' ? 'member' : kind, email, () =>
      entries(record.value, context),
    )
  },
}

function entries(value: unknown, context: ShapeContext): Entry[] {
  const columns = columnsOf(value)
  const address = addressIn(columns, 'email', 'emailaddress')
  const at = textIn(columns, 'created', 'createdat')
  switch (context.content) {
    case 'contacts':
      return contactEntries(objectOf(value), address, { ...context, subscribed: true })
    case 'spam':
      return [suppression('complaint', context, { address }, at)]
    case 'unsubscribes':
      return [suppression('unsubscribe', context, { address, tags: ['*'] }, at)]
    case 'groups': {
      const group = textIn(columns, 'groupname', 'group', 'groupid')
      if (group === '') throw new Unreadable('has no group')
      return [suppression('unsubscribe', context, { address, tags: [group] }, at)]
    }
    default: {
      const error = textIn(columns, 'reason')
      return [suppression('bounce', context, { address, error, code: replyCode(error) }, at)]
    }
  }
}

/** Applications name a template by its id, so that becomes the name; the title becomes the description. */
function templates(record: InputRecord, context: ShapeContext): Item[] {
  const value = (record.value ?? {}) as Record<string, unknown>
  const name = neededText(value, 'id')
  const given = Array.isArray(value['versions']) ? value['versions'].map(objectOf) : []
  const versions = given.map((version) => ({
    tag: textOf(version['id']) || textOf(version['name']),
    comment: textOf(version['name']),
    active: version['active'] === 1 || version['active'] === true,
    subject: textOf(version['subject']).replace(/^\{\{\{\s*subject\s*\}\}\}$/, ''),
    html: textOf(version['html_content']),
    text: version['generate_plain_content'] === true ? '' : textOf(version['plain_content']),
  }))
  return [templateItem(record, context, { name, description: textOf(value['name']) }, versions, fromSendgrid)]
}
