/**
 * Postmark: `GET /message-streams/{stream}/suppressions/dump` and `GET /templates/{id or alias}`, as JSON. The reason
 * ManualSuppression is an unsubscribe, by the recipient or by the customer in their place.
 */
import { type Item, neededText, refusedItem, textOf, Unreadable } from '../entry.ts'
import type { InputRecord } from '../input-file.ts'
import { fromPostmark } from '../template-syntax.ts'
import {
  addressIn,
  columnsOf,
  itemsOf,
  itemsOrReason,
  type Shape,
  type ShapeContext,
  suppression,
  templateItem,
  textIn,
} from './shape.ts'

export const POSTMARK: Shape = {
  contents: [''],
  lists: ['Suppressions', 'Templates'],
  items(record, context) {
    const value = (record.value ?? {}) as Record<string, unknown>
    if ('TemplateId' in value)
      return itemsOrReason(record, 'template', value['TemplateId'], () => templates(record, context))
    return itemsOf(record, 'bounce', value['EmailAddress'], () => {
      const columns = columnsOf(value)
      const address = addressIn(columns, 'emailaddress', 'email')
      const at = columns.get('createdat')
      const reason = textIn(columns, 'suppressionreason', 'reason')
      switch (reason) {
        case 'HardBounce':
          return [suppression('bounce', context, { address, error: 'Suppressed by the former service' }, at)]
        case 'SpamComplaint':
          return [suppression('complaint', context, { address }, at)]
        case 'ManualSuppression':
          return [suppression('unsubscribe', context, { address, tags: ['*'] }, at)]
        default:
          throw new Unreadable(
            `has the reason "${reason}", which is none of HardBounce, SpamComplaint, ManualSuppression`,
          )
      }
    })
  },
}

/** Applications name a template by its alias, else by its number. */
function templates(record: InputRecord, context: ShapeContext): Item[] {
  const value = record.value as Record<string, unknown>
  const name = textOf(value['Alias']) || neededText(value, 'TemplateId')
  const refused = (reason: string) => [refusedItem('template', record.place, name, reason)]
  if (value['TemplateType'] === 'Layout') return refused('is a layout: put it around its templates')
  const layout = textOf(value['LayoutTemplate'])
  if (layout !== '') return refused(`uses the layout "${layout}": put that around it`)
  const version = {
    tag: 'initial',
    comment: '',
    active: true,
    subject: textOf(value['Subject']),
    html: textOf(value['HtmlBody']),
    text: textOf(value['TextBody']),
  }
  return [
    templateItem(record, context, { name, description: textOf(value['Name']) }, [version], fromPostmark),
  ]
}
