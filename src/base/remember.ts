/** What is remembered of texts that come again and again. */

/** Puts in an entry. A map that has `max` begins anew: what is used will soon be back, at the cost of one look-up each. */
export function remember<K, V>(map: Map<K, V>, max: number, key: K, value: V): V {
  if (map.size >= max) map.clear()
  map.set(key, value)
  return value
}

/** The text in memory of its own: a slice keeps all of what it was cut from, a request of megabytes, for as long. */
export const ownText = (text: string): string => Buffer.from(text).toString()
