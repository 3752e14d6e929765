/**
 * The `account_id` of mail of the service itself, such as invitations. There is no such account: nobody reads these
 * messages or their events over the API (decision 59).
 */
export const SYSTEM_ACCOUNT_ID = 'system'
