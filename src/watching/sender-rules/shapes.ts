/** What receivers require of senders, as the API shows it (own-operations.md section 13). */
import { flag, integer, list, named, nullable, type Of, oneOf, optional, text } from '../../base/shape.ts'

const RULES = [
  ...(['spf', 'dkim', 'dmarc', 'spam-rate', 'one-click-unsubscribe'] as const),
  ...(['reply-address', 'list-hygiene', 'bimi'] as const),
] as const

export const FAMILIES = ['gmail', 'yahoo', 'microsoft'] as const
export type Family = (typeof FAMILIES)[number]

export type RuleFinding = Of<typeof FINDING>
const FINDING = named('SenderRuleFinding', 'A rule, and whether the domain follows it', {
  rule: oneOf('The rule', RULES),
  required_of: oneOf('Who has to follow it', ['everybody', 'bulk senders', 'nobody']),
  required_by: list('Whose rule it is', oneOf('', FAMILIES)),
  passed: nullable(flag('The domain follows it; null: it cannot be said')),
  sentence: text('What was found, and what to change'),
  figure: optional(
    text('What was measured, with four decimals; only for spam-rate and list-hygiene', { example: '0.0004' }),
  ),
  limit: optional(
    text('What the figure must be below; only for spam-rate and list-hygiene', { example: '0.0030' }),
  ),
})

const PROVIDER = named('SenderRuleProvider', 'How much a domain sends to one provider', {
  provider: oneOf('Gmail; Yahoo with AOL; Outlook.com with Hotmail and Live', FAMILIES),
  is_bulk_sender: flag('More than 5,000 messages on the busiest day'),
  busiest_day: integer('Messages for it on the busiest of the last 30 days'),
})

export type SenderRules = Of<typeof SENDER_RULES>
export const SENDER_RULES = named('SenderRules', 'A finding for each rule', {
  is_bulk_sender: flag('A bulk sender for one of the providers'),
  busiest_day: integer('The greatest figure of the providers'),
  providers: list('All providers, each judged by its own mail', PROVIDER),
  rules: list('All rules', FINDING),
})
