/**
 * A bounded number of places that many share. While there is room, whoever asks gets one. After that the places are shared evenly,
 * level by level: the newcomer gets the oldest place of the one who has most, if it then still has no more than that one.
 */
interface Place {
  /** The owner at each level, the widest first, such as account and user. */
  path: readonly string[]
  end(): void
}

/** @param max in all; @param firstMax of one owner of the first level */
export function createFairPlaces({ max, firstMax }: { max: number; firstMax: number }) {
  const taken = new Set<Place>()

  return {
    /** How many are taken. */
    get size(): number {
      return taken.size
    },
    /**
     * Takes a place, and returns what gives it back. Null: all are taken, and nobody has two more than the newcomer.
     * @param path as many levels as every other; @param end called when another needs the place, which is given back by then
     */
    enter(path: readonly string[], end: () => void): (() => void) | null {
      const ofFirst = [...taken].filter((place) => place.path[0] === path[0])
      const needsRoom = ofFirst.length >= firstMax ? ofFirst : taken.size >= max ? [...taken] : null
      if (needsRoom !== null) {
        const loser = loserAmong(needsRoom, path)
        if (loser === null) return null
        taken.delete(loser)
        loser.end()
      }
      const place = { path, end }
      taken.add(place)
      return () => void taken.delete(place)
    },
  }
}

/** The place that `path` may take over; null: none. */
function loserAmong(places: readonly Place[], path: readonly string[]): Place | null {
  let among = places
  for (const [level, name] of path.entries()) {
    const most = largest(among, level)
    const own = among.filter((place) => place.path[level] === name)
    if (most.length > own.length + 1) return oldestOfLargest(most, level + 1, path.length)
    among = own
  }
  return null
}

function oldestOfLargest(places: readonly Place[], level: number, levels: number): Place {
  if (level >= levels) return places[0] as Place
  return oldestOfLargest(largest(places, level), level + 1, levels)
}

/** The places of the owner at this level who has most of them, the oldest first. */
function largest(places: readonly Place[], level: number): Place[] {
  const groups = Map.groupBy(places, (place) => place.path[level])
  return [...groups.values()].reduce((most, group) => (group.length > most.length ? group : most), [])
}
