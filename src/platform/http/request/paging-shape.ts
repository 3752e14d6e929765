/** Shapes of pages. */
import { type Fields, list, named, type ObjectShape, type Shape, text } from '../../../base/shape.ts'

const link = (which: string) => text(`Address of the ${which} page`, { only: { format: 'uri' } })

/** The four links of a page. */
export const PAGING = named('Paging', 'Links to the pages around this one', {
  previous: link('previous'),
  first: link('first'),
  next: link('next'),
  last: link('last'),
})

/** `{ items, paging }`, and further members of an area. */
export const pageOf = <T, const F extends Fields>(
  name: string,
  description: string,
  item: Shape<T>,
  more: F = {} as F,
): ObjectShape<{ items: Shape<readonly T[]>; paging: typeof PAGING } & F> =>
  named(name, description, { items: list('The items of this page', item), paging: PAGING, ...more })
