/**
 * Amazon SES: the JSON that `aws sesv2 list-suppressed-destinations`, `list-contacts` and `get-email-template` (or `aws ses
 * get-template`) print.
 */
import { type Entry, type Item, neededText, objectOf, textOf, Unreadable } from '../entry.ts'
import type { InputRecord } from '../input-file.ts'
import { fromSes } from '../template-syntax.ts'
import { itemsOf, itemsOrReason, type Shape, type ShapeContext, suppression, templateItem } from './shape.ts'

const REASONS: Readonly<Record<string, 'bounce' | 'complaint'>> = { BOUNCE: 'bounce', COMPLAINT: 'complaint' }

export const SES: Shape = {
  contents: [''],
  lists: ['SuppressedDestinationSummaries', 'Contacts'],
  items(record, context) {
    const value = (record.value ?? {}) as Record<string, unknown>
    if ('TemplateName' in value || 'Template' in value)
      return itemsOrReason(record, 'template', value['TemplateName'], () => templates(record, context))
    const address = value['EmailAddress']
    if (record.member === 'Contacts')
      return itemsOf(record, 'unsubscribe', address, () => contactEntries(value, context))
    return itemsOf(record, 'bounce', address, () => {
      const kind = REASONS[textOf(value['Reason'])]
      if (!kind)
        throw new Unreadable(
          `has the reason "${textOf(value['Reason'])}", which is none of BOUNCE, COMPLAINT`,
        )
      const details = kind === 'bounce' ? { error: 'Suppressed by the former service' } : {}
      return [suppression(kind, context, { address, ...details }, value['LastUpdateTime'])]
    })
  },
}

/** Topics are tags here: who opted out of one gets no mail with that tag. */
function contactEntries(value: Record<string, unknown>, context: ShapeContext): Entry[] {
  const address = textOf(value['EmailAddress'])
  const { UnsubscribeAll: isOut, LastUpdatedTimestamp: at, TopicPreferences: preferences } = value
  const topics = (Array.isArray(preferences) ? preferences : []).flatMap((one) => {
    const { TopicName, SubscriptionStatus } = objectOf(one)
    return SubscriptionStatus === 'OPT_OUT' ? [textOf(TopicName)] : []
  })
  const tags = isOut === true ? ['*'] : topics
  const member: Entry[] =
    context.list === null
      ? []
      : [{ kind: 'member', list: context.list, address, name: '', vars: {}, subscribed: isOut !== true }]
  return [...member, ...(tags.length > 0 ? [suppression('unsubscribe', context, { address, tags }, at)] : [])]
}

function templates(record: InputRecord, context: ShapeContext): Item[] {
  const value = objectOf(record.value)
  const template = 'Template' in value ? objectOf(value['Template']) : value
  const content = objectOf(template['TemplateContent'] ?? {})
  const name = neededText(template, 'TemplateName')
  const version = {
    tag: 'initial',
    comment: '',
    active: true,
    subject: textOf(content['Subject'] ?? template['SubjectPart']),
    html: textOf(content['Html'] ?? template['HtmlPart']),
    text: textOf(content['Text'] ?? template['TextPart']),
  }
  return [templateItem(record, context, { name, description: '' }, [version], fromSes)]
}
