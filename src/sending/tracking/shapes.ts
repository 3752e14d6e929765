/** Answers of the operations on tracking (tracking.md). */
import { flag, list, message, named, object, optional, text } from '../../base/shape.ts'
import { FIELD_SHAPES } from '../domains/fields.ts'

const OPEN_TRACKING = named('OpenTracking', 'How opens are tracked', {
  active: flag('Opens are tracked'),
  place_at_the_top: flag('The pixel is at the beginning of the html'),
})
const CLICK_TRACKING = named('ClickTracking', 'How clicks are tracked', {
  active: flag('Clicks are tracked, perhaps only those of the html part'),
  htmlonly: flag('Links of the text part stay as they are'),
})
const UNSUBSCRIBE_TRACKING = named('UnsubscribeTracking', 'How mail can be unsubscribed from', {
  active: flag('Mail gets footers and List-Unsubscribe'),
  html_footer: text('Footer of the html part; may be empty'),
  text_footer: text('Footer of the text part; may be empty'),
  on_bulk: optional(flag('False: bulk mail gets no List-Unsubscribe of its own; absent: it does')),
})

export const TRACKING = object('The settings', {
  tracking: named('Tracking', 'What is tracked for a domain', {
    open: OPEN_TRACKING,
    click: CLICK_TRACKING,
    unsubscribe: UNSUBSCRIBE_TRACKING,
    web_scheme: FIELD_SHAPES.web_scheme,
  }),
})

export const DOMAIN_TOPICS = named('DomainTopics', 'What people choose from behind unsubscribe links', {
  active: flag('Unsubscribe links lead to a page of topics, and one click leaves the topic of a mail'),
  topics: list(
    'Tags that are topics, at most 20',
    named('Topic', 'A topic', {
      tag: text('Tag of messages on the topic'),
      title: text('What people call it'),
    }),
  ),
  page_template: optional(
    text('Stored template of the pages behind unsubscribe links; absent: the built-in pages'),
  ),
  lists: list(
    'Mailing lists of the domain that are topics',
    object('A list', { address: text('Address of the list'), title: text('What people call it') }),
  ),
})

const CHANGED = 'The settings as they are now'
export const UPDATED = 'Domain tracking settings have been updated'
const DONE = message(UPDATED).fields
export const OPEN_CHANGED = object(CHANGED, { ...DONE, open: OPEN_TRACKING })
export const CLICK_CHANGED = object(CHANGED, { ...DONE, click: CLICK_TRACKING })
export const UNSUBSCRIBE_CHANGED = object(CHANGED, { ...DONE, unsubscribe: UNSUBSCRIBE_TRACKING })
