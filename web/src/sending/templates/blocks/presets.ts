/** What "Add a block" adds, and what a template of blocks begins with. */
import { type Block, blocksOf, type Item, type ItemKind, type Row } from './block-document.ts'

const ITEMS: Readonly<Record<ItemKind, string>> = {
  text: '<mj-text line-height="1.6">New text</mj-text>',
  button: '<mj-button href="{{link}}">Open</mj-button>',
  image: '<mj-image src="" alt="" />',
  divider: '<mj-divider border-width="1px" border-color="#dddddd" />',
  spacer: '<mj-spacer height="24px" />',
}

const columnsOf = (count: number) =>
  `<mj-section>${`
      <mj-column>
        <mj-text line-height="1.6">New text</mj-text>
      </mj-column>`.repeat(count)}
    </mj-section>`

const ROWS = {
  columns2: columnsOf(2),
  columns3: columnsOf(3),
  product: `<mj-raw>{{#each products}}</mj-raw>
    <mj-section css-class="product">
      <mj-column width="30%">
        <mj-image src="{{picture}}" alt="{{name}}" />
      </mj-column>
      <mj-column width="70%">
        <mj-text line-height="1.6"><strong>{{name}}</strong><br>{{price}}</mj-text>
        <mj-button href="{{link}}" align="left">View</mj-button>
      </mj-column>
    </mj-section>
    <mj-raw>{{/each}}</mj-raw>`,
  header: `<mj-section css-class="header">
      <mj-column>
        <mj-text align="center" font-size="20px"><strong>{{company}}</strong></mj-text>
      </mj-column>
    </mj-section>`,
  footer: `<mj-section css-class="footer">
      <mj-column>
        <mj-text align="center" font-size="12px" color="#666666">{{company}}, {{address}}<br><a href="%unsubscribe_url%">Unsubscribe</a></mj-text>
      </mj-column>
    </mj-section>`,
} as const

export type RowName = keyof typeof ROWS

const first = (source: string) => blocksOf(source)[0] as Block
const row = (inner: string) =>
  first(`<mj-section>
      <mj-column>
        ${inner}
      </mj-column>
    </mj-section>`) as Row

export const newItem = (kind: ItemKind) => row(ITEMS[kind]).columns[0]?.items[0] as Item
export const newRow = (name: RowName) => first(ROWS[name])
/** A row of one column with that item. */
export const rowWith = (kind: ItemKind) => row(ITEMS[kind])

export const EMPTY_DOCUMENT = `<mjml>
  <mj-head>
    <mj-attributes>
      <mj-all font-family="Helvetica, Arial, sans-serif" />
    </mj-attributes>
  </mj-head>
  <mj-body background-color="#f4f5f6">
    <mj-section background-color="#ffffff">
      <mj-column>
        <mj-text line-height="1.6">New text</mj-text>
      </mj-column>
    </mj-section>
  </mj-body>
</mjml>
`
