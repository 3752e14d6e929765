/** Bounded memory for values of recurring texts. */

/** Sets an entry. A map with `max` entries is cleared first: those in use are soon back, at the cost of one lookup each. */
export function remember<K, V>(map: Map<K, V>, max: number, key: K, value: V): V {
  if (map.size >= max) map.clear()
  map.set(key, value)
  return value
}

/** The text in memory of its own: a slice keeps the whole text that it was cut from alive, maybe a request of megabytes. */
export const ownText = (text: string): string => Buffer.from(text).toString()
