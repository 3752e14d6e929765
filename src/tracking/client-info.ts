import type { ClientInfo } from '../events/later-events.ts'

export const UNKNOWN_CLIENT: ClientInfo = {
  'client-name': 'unknown',
  'client-os': 'unknown',
  'client-type': 'unknown',
  'device-type': 'unknown',
  'user-agent': '',
  bot: '',
}
