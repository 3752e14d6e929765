import type { Geolocation } from '../events/later-events.ts'

export const UNKNOWN_PLACE: Geolocation = {
  country: 'Unknown',
  region: 'Unknown',
  city: 'Unknown',
  timezone: 'Unknown',
}
