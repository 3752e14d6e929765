/** A subaccount and its features (accounts.md section 3). */
import { flag, gmtDate, named, object, oneOf, optional, text } from '../../base/shape.ts'
import { forFeatures } from '../accounts/account-directory.ts'

const SWITCH = named('FeatureSwitch', 'A feature of a subaccount: `{enabled}`', { enabled: flag('It is on') })
export const GIVEN_FEATURES = object('The features that were given', forFeatures(optional(SWITCH)))

export const SUBACCOUNT = named('Subaccount', 'An account as its parent sees it', {
  id: text('Identifier', { example: '507f1f77bcf86cd799439011' }),
  name: text('Unique among the subaccounts of the parent that are not closed', { example: 'Acme' }),
  status: oneOf('`disabled`: it may not send; `closed`: for good', ['open', 'disabled', 'closed']),
  created_at: gmtDate('When it was created'),
  updated_at: gmtDate('Last change'),
  features: object('Its features', forFeatures(SWITCH)),
  pod: optional(text('The pod that has it; only where there are pods', { example: 'a' })),
  disabled: optional(
    object('Why; only while it is disabled', {
      reason: text('Reason; empty if none was given'),
      note: text('More about it; empty if none was given'),
    }),
  ),
})
export const SUBACCOUNT_ANSWER = object('The subaccount', { subaccount: SUBACCOUNT })
