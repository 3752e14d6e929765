// Made by `node scripts/update-mail-support.ts` from the data of caniemail.com (https://www.caniemail.com), by way of the
// npm package caniemail. MIT, Copyright (c) 2019 HTeuMeuLeu; of the package: Copyright Avi Goldman, Copyright Andrew Powell.

/** Date of the data. */
export const SUPPORT_DATE = '2025-09-09'

/** Mail programs, a line each. */
export const CLIENTS = `
AOL (Android)
AOL (Desktop Webmail)
AOL (iOS)
Apple Mail (iOS)
Apple Mail (macOS)
Fastmail (Desktop Webmail)
Free.fr (Desktop Webmail)
Gmail (Android)
Gmail (Desktop Webmail)
Gmail (iOS)
Gmail (Mobile Webmail)
GMX (Android)
GMX (Desktop Webmail)
GMX (iOS)
HEY (Desktop Webmail)
1&1 (Android)
1&1 (Desktop Webmail)
LaPoste.net (Android)
LaPoste.net (Desktop Webmail)
LaPoste.net (iOS)
Mail.ru (Desktop Webmail)
Orange (Android)
Orange (Desktop Webmail)
Orange (iOS)
Outlook (Android)
Outlook (iOS)
Outlook (macOS)
Outlook (Outlook.com)
Outlook (Windows)
Outlook (Windows Mail)
ProtonMail (Android)
ProtonMail (Desktop Webmail)
ProtonMail (iOS)
RainLoop (Desktop Webmail)
Samsung Email (Android)
SFR (Android)
SFR (Desktop Webmail)
SFR (iOS)
T-online.de (Desktop Webmail)
Mozilla Thunderbird (macOS)
Mozilla Thunderbird (Windows)
WEB.DE (Android)
WEB.DE (Desktop Webmail)
WEB.DE (iOS)
WP.pl (Desktop Webmail)
Yahoo! Mail (Android)
Yahoo! Mail (Desktop Webmail)
Yahoo! Mail (iOS)
`

/** A feature a line: its name at caniemail.com, its title, what it is recognised by, and its state in each program. */
export const FEATURES = `
css-accent-color|accent-color|property accent-color|nnnyynunnnnuuuyuuuuuynnnnnnnnnnnnuynynuuuuuuunnn
css-align-items|align-items|property align-items|nnnyyyunnnnynyyyyuyuynnnyyyynnyyyuyyyyuyuynyunnn
css-animation|animation|property animation|nnnyyyunnnnynyyyauaunnnnnnnnnnnnnuynanuyuynyunnn
css-aspect-ratio|aspect-ratio|property aspect-ratio|nnnyynunnnnynyyyyuyuynnnnnnnnnyyyunyyyunuynyunnn
css-at-font-face|@font-face|at font-face|nnnyynunnnnnnyynyununnnnnnnnanynnuynnnuyunnyunnn
css-at-import|@import|at import|nnnyynunnnnnnyynyununnnnnnnnyyynnunnnnununnynnnn
css-at-keyframes|@keyframes|at keyframes|nynyyyunnnnynyyyaununnnnnnnnnnnnnuynnnuyuynyunyn
css-at-media-device-pixel-ratio|@media (-webkit-device-pixel-ratio)|media -webkit-device-pixel-ratio,media -webkit-min-device-pixel-ratio|nnnyyyunnnnynyyyyununyyyyyyynnynnuynnnunuynyunnn
css-at-media-hover|@media (hover), @media (any-hover)|media hover|nnnyyuunnnnuuuuuuununuuuyyyynnyyyuynnnuuuuuuunnn
css-at-media-orientation|@media (orientation)|media orientation|nnnayyuyynnyyyyyyunuyyyyyyyynnnnnuynnnunuyyyunnn
css-at-media-prefers-color-scheme|@media (prefers-color-scheme)|media prefers-color-scheme|nnnyyyynnnnynynyyununyyyyyyynnnnnuynnnnnuynyunnn
css-at-media-prefers-reduced-motion|@media (prefers-reduced-motion)|media prefers-reduced-motion|nnnyynunnnnynyyyyununyyyyyyynnaaauynynunuynyunnn
css-at-media|@media|at media|aaayyyuaaanyyyyyyunuayyyaaaannyaauannnunuyyyuaaa
css-at-supports|@supports|at supports|yyyyynunnnnynyyyyununyyynnnnnnynnuynnnunuynyuyyy
css-backdrop-filter|backdrop-filter|property backdrop-filter|nnnyyuunnnnunuuuuuuuyuunnnynnnuuuuyyyyuuuunuunnn
css-background-blend-mode|background-blend-mode|property background-blend-mode|nnnyyyuayanynyyyyuyuynnnyyyynnyyyuyyyyuyuynyunnn
css-background-clip|background-clip|property background-clip|nnnyyyuayanynyyyyuyuynnnyyyynnyyyuyyyyuyuynyunnn
css-background-color|background-color|property background-color|yyyyyyuyyyyyayyyyuyuyaaayyyyyyyyyuyyyyuyuyayuyyy
css-background-image|background-image|property background-image|aaayyynyyyyyayyyyuyuyyyyyyyynnyyyuyyyynyuyayuaaa
css-background-origin|background-origin|property background-origin|nnnyyyuayanynyyyyuyuynnnyyyynnyyyuyyyyuyuynyunnn
css-background-position|background-position|property background-position|yyyyyyuyyyyyayyyyuyuyyyyyyyynnyyyuyyyyuyuyayuyyy
css-background-repeat|background-repeat|property background-repeat|yyyyyyuyyyyyayyyyuyuyyyyyyyynnyyyuyyyyuyuyayuyyy
css-background-size|background-size|property background-size|yyyyyyuayanynyyyyuyuynnnyyyynnyyyuyyyyuyuynyuyyy
css-background|background|property background|aaayyyuyyyyyayyyyuyuyaaayyyyaayyyuyyyyuyuyayuaaa
css-block-inline-size|block-size & inline-size|property block-size,property inline-size|nnnyyyunnnnynyyyyuyuyunnnnnnnnyyyuyuyyuyuynyunnn
css-border-collapse|border-collapse|property border-collapse|yyyyyuuyyyyuyuuuuuuuyuuuyyyyyyuuuuyyyyuyuuyuuyyy
css-border-image|border-image|property border-image|nnnyyyunnnnynyyyyuyuynnnnnnnnnyyyuyyyyuyuynyunnn
css-border-inline-block|border-inline & border-block|property border-inline,property border-block|nnnynuunnnnynyuyyuuuyuuunnnnnnyyyunyyyuuuynyunnn
css-border-radius|border-radius|property border-radius|aaayyyuyyyyynyyyyuyuynnnyyyynnyyyuyyyyuyuynyuaaa
css-border-spacing|border-spacing|property border-spacing|yyyyyuuyyyyuyuuuuuuuyuuuyynynnuuuuyyyyuyuuyuuyyy
css-border|border|property border|yyyyyyuyyyyyyyyyyuyuyyyyyyyyaayyyuyyyyuyuyyyuyyy
css-box-shadow|box-shadow|property box-shadow|nnnyyyuananynyyyyuyuynnnyyyynnyyyuyyyyuyuynyunnn
css-box-sizing|box-sizing|property box-sizing|nnnyyyuyyynyyyyyyuyuynnnyyyynnyyyuyyyyuyuyyyunnn
css-caption-side|caption-side|property caption-side|yyyyyyuyyyyyyyyyyuyuyyyyyyyynnyyyuyyyyuyuyyyuyyy
css-clear|clear|property clear|aaayyuuayyuuauuuuuuuyuuuayuynnuyuuyuuuuuuuauuaaa
css-clip-path|clip-path|property clip-path|nnnyyyunnnnynyyyyuyuannnnnnnnnyyyuyyyyuyuynyunnn
css-color-scheme|color-scheme CSS property|property color-scheme|nnnyynunnnnununuuuuunuuunnnnnunynuyyannyuunuunnn
css-column-count|column-count|property column-count|nnnyyyuyyynynyyyyuyuyyyyyyyynnyyyuyyyyuyuynyunnn
css-column-layout-properties|css column properties|property columns,property column-width,property column-rule|nnnyyyuyyyyuuuyuuuuuyuuuyyyynnyyyuyyyyuyuuuuunnn
css-conic-gradient|conic-gradient()|function conic-gradient|nnnyyynnnnnuuuyuuuyuynnnnnnnnnyyyuayyyyyuuuuunnn
css-cursor|cursor|property cursor|uuunauunnnnyanuuuuuuuuuunnnnuuuauuuuuuuyuuuuuaan
css-direction|direction|property direction|yyyyyyuyyyayyyyyyuyuyyyyyyyyyyyyyuyyyyuyuyyyuyyy
css-display-flex|display:flex|value display flex,value display inline-flex|yyyyyyuayayynyyyyuyuynnnyyyynnyyyuyyyyuyuynyuyyy
css-display-grid|display:grid|value display grid,value display inline-grid|nnnyyyunnnyynyyyyuyuynnnnnyynnyyyuyyyyuyuynyunnn
css-display-none|display:none|value display none|yyyyyyuyyynyyyyyyuyuyyyyyyyyaayyyuyyyyuyuyyyuyyy
css-display|display|property display|aaayyauayayyayyyyuyuyaaayyyyaayyyuyyyyuyuyayuaaa
css-empty-cells|empty-cells|property empty-cells|nynyyuuyyyuuuuuuuuuunuuuyyyynnuuuuyuuuuuuuuuunyn
css-filter|filter|property filter|nnnyynunnnnynyyyyuyuannnnnnnnnyyyuyyyyuyuynyunnn
css-flex-direction|flex-direction:column|property flex-direction|nnnyyyunnnnynyyyyuyuynnnnyyynnyyyuyyyyuyuynyunnn
css-flex-wrap|flex-wrap: wrap|property flex-wrap|nnnyyyunnnnynyyyyuyuynnnyyyynnyyyuyyyyuyuynyunnn
css-float|float|property float|aaayyyuayayyayyyyuyuyyyyyyyynnyyyuyyyyuyuyayuaaa
css-font-kerning|font-kerning|property font-kerning|unuyyuyyyyyunuuuuuuunuuuyyyynuuuuuyuyunyuuuuunnn
css-font-size|font-size|property font-size|aaayyuuyyyyuauuuuuuuyuuuyyyyaauuuuauuuuyuuauuaaa
css-font-stretch|font-stretch|property font-stretch|unnyyuunyyyuuuuuuuuuyuuunyyynuuyyunnyyuyuuuuunnn
css-font-weight|font-weight|property font-weight|aaayyyuyyyyyyyyyyuyuyyayyyyyaayyyuyyyyuyuyyyuaaa
css-font|font shorthand|property font|yyyyyyuyyyyyyyyyyuyuyyyyyyyyyyyyyuyyyyuyuyyyuyyy
css-function-clamp|clamp()|function clamp|nnnyynuayayynyyyyuyuynnnnnnnnnyyyunyyyuyuynyunnn
css-function-light-dark|light-dark()|function light-dark|unnyyunnnnnunuauuuauaunnunnnnnuayuauaaayuuuuuunn
css-function-max|max()|function max|nnnyynuayayynyyyyuyuynnnnnnnnnyyyunyyyuyuynyunnn
css-function-min|min()|function min|nnnyynuayayynyyyyuyuynnnnnnnnnyyyunyyyuyuynyunnn
css-gap|gap, column-gap, row-gap|property gap,property column-gap,property row-gap|nnnyyayaaanunuyuuuyuynnnaaaannyyyuyyyyyyuuuuunnn
css-grid-template|grid-template-* properties|property grid-template,property grid-template-columns,property grid-template-rows,property grid-template-areas|nnnyynynnnnunuyuuuyuynnnnnnnnnyyyuyyyyyyuuuuunnn
css-height|height property|property height|nnnyyyuyyyyyyyyyyuyuyyyyyyyyayyyyuyyyyuyuyyyunnn
css-hyphens|hyphens|property hyphens|unuyyuunnnuuuuuuuuuuyuuunnnnnnuuuuyyyyuuuuuuunnn
css-important|!important keyword|word !important|aaayyyuaaaaynyyyyuyuynnnyyyyaaaaauyayauyuynynaaa
css-inline-size|inline-size|property inline-size|nnnnnnunnnnynyyyyuyuyynynnnnnnyyyuyyyyuyuynyunnn
css-inset|inset|property inset|nnnyyuunnnnunuuuuuuunuuunnnnnnuuuunuuuuyuunuunnn
css-justify-content|justify-content|property justify-content|nnnyyyunnnnynyyyyuyuynnnyyyynnyyyuyyyyuyuynyunnn
css-left-right-top-bottom|left, right, top, bottom|property left,property right,property top,property bottom|nnnyyyunnnnyyyyyyuyuayyyyyyynnyyyuayyyuyuyyyunnn
css-letter-spacing|letter-spacing|property letter-spacing|yyyyyyuyyyyyyyyyyuyuyyyyyyyyaayyyuyyyyuyuyyyuyyy
css-line-height|line-height|property line-height|yyyyyyuyyyyyyyyyyuyuyayayyyyaayyyuyyyyuyuyyyuyyy
css-linear-gradient|linear-gradient()|function linear-gradient|nnnyyyyayyyynyyyyuyuynnnnnnnnnyyyuayyyyyuynyunnn
css-list-style-image|list-style-image|property list-style-image|nnnyyyunnnnyyyyyyuyuyynynnnnnnnnyuyyyyuyuyyyunnn
css-list-style-position|list-style-position|property list-style-position|yyyyyyuyyyyyyyyyyuyuyyyyyyyynnyyyuyyyyuyuyyyuyyy
css-list-style-type|list-style-type|property list-style-type|yyyyyyuyyyyyyyyyyuyuyyyyyyyyyyyyyuyyyyuyuyyyuyyy
css-list-style|list-style|property list-style|aaayyyuaaaayyyyyyuyuyyyyyyayaanayuyyyyuyuyyyuaaa
css-margin-block-start-end|margin-block-start & margin-block-end|property margin-block-start,property margin-block-end|nnnnyuunnnnynyuyyuuuyuuunnnnnnyyyuyuuuuuuynyunnn
css-margin-inline-block|margin-inline & margin-block|property margin-inline,property margin-block|nnnnyyunnnnynyyyyuyuyyyynnnnnnyyyunyyyuyuynyunnn
css-margin-inline-start-end|margin-inline-start & margin-inline-end|property margin-inline-start,property margin-inline-end|nnnnyuunnnnynyuyyuuuyuuunnnnnnyyyuyuuuuuuynyunnn
css-margin|margin|property margin|aaayyyuaaaayyyyyyuyuayyyaaaaaayyyuyyyyuyuyyyuaaa
css-mask-image|mask-image|property mask-image|nnnyyuunnnnunuuuuuuuyuuunnynnnuuuuyuuuuuuunuunnn
css-max-block-size|max-block-size|property max-block-size|unuyyuunnnuuuuuuuuuuyuuunynnnnyyyuyuuuuuuuuuunnn
css-max-height|max-height property|property max-height|yyyyyyuyyyyyyyyyyuyuyyyyyyyynnyyyuyyyyuyuyyyuyyy
css-max-inline-size|max-inline-size|property max-inline-size|nnnyyuunnnnunuuuuuuuyuuunnnnnnyyyuyuuuuuuunuunnn
css-max-width|max-width|property max-width|yyayyyuyyyyyyyyyyuyuyyyyyyyyaayyauyyyyuyuyyyuyya
css-min-block-size|min-block-size|property min-block-size|nnnyyuunnnnunuuuuuuuyuuunnnnnnyyyuyuuuuuuunuunnn
css-min-height|min-height property|property min-height|yyyyyyuyyyyyyyyyyuyuyyyyyyyynnyynuyyynuyuyyyuyyy
css-min-inline-size|min-inline-size|property min-inline-size|unuyyuunnnnuuuuuuuuuyuuunynnnnyyyuyuuuuuuuuuunnn
css-min-width|min-width property|property min-width|yyyyyyuyyyyyyyyyyuyuyyyyyyyynnyyyuyyyyuyuyyyuyyy
css-mix-blend-mode|mix-blend-mode|property mix-blend-mode|nnnyynuayanynyyyyuyuynnnyyyynnyyyuyyyyuyuynyunnn
css-modern-color|lch(), oklch(), lab(), oklab()|function lch,function oklch,function lab,function oklab|nnnyyyunnnnuuuyuuuuuyuuunnnnnunyyunuuuunuuuuunnn
css-object-fit|object-fit|property object-fit|nnnyyyuayanynyyyyuyuynnnyyyynnyyyuyyyyuyuynyunnn
css-object-position|object-position|property object-position|nnnyyyuayanynyyyyuyuynnnyyyynnyyyuyyyyuyuynyunnn
css-opacity|opacity|property opacity|nnnyyyuyyynynyyyyuyunnnnyyyynnyyyuyyyyuyuynyuyyy
css-orphans|orphans|property orphans|nnnyyuunnnnunuuuuuuuyuuuyyyynnuuuuyuuuuuuunuunnn
css-outline-offset|outline-offset|property outline-offset|nnnyyyynnnnunuyuuuyuynnnnnnnnnyyyuyyyyyyuuuuunnn
css-outline|outline|property outline|yyyyyyyyyyyyyyyyyuyuynnnyyyynnyyyuyyyyyyuyyyuyyy
css-overflow-wrap|overflow-wrap|property overflow-wrap|unuaauunnnuuuuuuuuuuyuuunnnnnnuuuuyuuuuuuuuuunnn
css-overflow|overflow|property overflow|aaaaayuaaaaaaayyyuyuayayaaaannaaauayyyuyuaaauaaa
css-padding-block-start-end|padding-block-start & padding-block-end|property padding-block-start,property padding-block-end|nnnnyuunnnnynyuyyuuuyuuunnnnnnyyyuyuuuuuuynyunnn
css-padding-inline-block|padding-inline & padding-block|property padding-inline,property padding-block|nnnnyuunnnnynyuyyuuuyuuunnnnnnyyyunuuuuuuynyunnn
css-padding-inline-start-end|padding-inline-start & padding-inline-end|property padding-inline-start,property padding-inline-end|nnnnyuunnnnynyuyyuuuyuuunnnnnnyyyuyuuuuuuynyunnn
css-padding|padding|property padding|yyyyyyuyyyyyyyyyyuyuyyyyyyyyaayyyuyyyyuyuyyyuyyy
css-position|position|property position|aaaaaaunnnnyyyayyuaunaaaanaannyyyuaaaauyuyyyuaaa
css-pseudo-class-active|:active|pseudo active|yynnnyunnnnyyyyyyununyynynaannyyyunnnnuyuyyyuyyy
css-pseudo-class-checked|:checked|pseudo checked|yyyyyyunnnnnnynnnununnnnaaaannnnnuynnnuyunnyuyyy
css-pseudo-class-first-child|:first-child|pseudo first-child|yyyyyyunnnnyyyyyyununyyyyyaannynnuynnnuyuyyyuyyy
css-pseudo-class-first-of-type|:first-of-type|pseudo first-of-type|yyyyyyunnnnynyyyyununyyyyyaannynnuynnnuyuynyuyyy
css-pseudo-class-focus|:focus|pseudo focus|yynnnyunnnnnyyynyununyynynaannyyyuynnnuyunyyuyyy
css-pseudo-class-has|:has()|pseudo has|nnnyyyunnnnynyyyyununnynnnnnnnnyyuynnnunuynyunnn
css-pseudo-class-hover|:hover|pseudo hover|yynyyyuaynnynyyyyununyyyynaannyyyuynnnuyuynyuyyy
css-pseudo-class-lang|lang()|pseudo lang|nnnyyuunnnnuuuuuuununuuuyynnnnyyyuyunuuuuuuuunnn
css-pseudo-class-last-child|:last-child|pseudo last-child|yyyyyyunnnnyyyyyyununyyyyyaannynnuynnnuyuyyyuyyy
css-pseudo-class-last-of-type|:last-of-type|pseudo last-of-type|yyyyyyunnnnynyyyyununyyyyyaannynnuynnnuyuynyuyyy
css-pseudo-class-link|:link|pseudo link|yyyyyyunnnnyyyyyyununyyyyyaayyynnuynnnuyuyyyuyyy
css-pseudo-class-not|:not|pseudo not|nnnyyyunnnnynyyyyununyyynnnnnnynnuynnnuyuynyunnn
css-pseudo-class-nth-child|:nth-child|pseudo nth-child|nnnyyyunnnnynyyyyununyyynnnnnnynnuynnnuyuynyunnn
css-pseudo-class-nth-last-child|:nth-last-child|pseudo nth-last-child|nnnyyyunnnnynyyyyununyyynnnnnnynnuynnnuyuynyunnn
css-pseudo-class-nth-last-of-type|:nth-last-of-type|pseudo nth-last-of-type|nnnyyyunnnnynyyyyununyyynnnnnnnnnuynnnuyuynyunnn
css-pseudo-class-nth-of-type|:nth-of-type|pseudo nth-of-type|nnnyyyunnnnynyyyyununyyynnnnnnnnnuynnnuyuynyunnn
css-pseudo-class-only-child|:only-child|pseudo only-child|yyyyyyunnnnyyyyyyununyyyyyaannynnuynnnuyuyyyuyyy
css-pseudo-class-only-of-type|:only-of-type|pseudo only-of-type|yyyyyyunnnnyyyyyyununyyyyyaannynnuynnnuyuyyyuyyy
css-pseudo-class-target|:target|pseudo target|yynnnnunnnnnyynnnununynnyyaannynnuynnnuyunyyuyyy
css-pseudo-class-visited|:visited|pseudo visited|yynnnyunnnnnynynyununnynyyaannnnnunnnnuyunynuyyy
css-pseudo-element-after|::after|pseudo after|nnnyyyunnnnynyyyyununnnnnaaannynnuynnnuyuynyunnn
css-pseudo-element-before|::before|pseudo before|nnnyyyunnnnynyyyyununnnnnaaannynnuynnnuyuynyunnn
css-pseudo-element-first-letter|::first-letter|pseudo first-letter|yyyyyyunnnnyyyyyyununnyynaaannynnuynnnuyuyyyuyyy
css-pseudo-element-first-line|::first-line|pseudo first-line|yyyyyyunnnnyyyyyyununnyynaaannynnuynnnuyuyyyuyyy
css-pseudo-element-marker|::marker|pseudo marker|yyyyyyunnnnuuuyuuununnyynnnnnnnyyuynnnuyuuuuuyyy
css-pseudo-element-placeholder|::placeholder|pseudo placeholder|yyyyyyunnnnnnynnnununnnnnaaannnnnuynnnuyunnyuyyy
css-radial-gradient|radial-gradient()|function radial-gradient|nnnyyyyayyyynyyyyuyuyyyynnnnnnyyyuyyyyyyuynyunnn
css-resize|resize|property resize|nnnnauunnnuunnuuuuuuyuunnnnnnnuunuyuunuuuunnunnn
css-rgb|rgb()|function rgb|aaayyyuaaaayayyyyuyuyaaayyyyaayyyuyyyyuyuyayuaaa
css-rgba|rgba()|function rgba|aaayyyuaaaaynyyyyuyuynnnyyyynnyyyuyyyyuyuynyuaaa
css-shape-margin|shape-margin|property shape-margin|nnnyyuunnnnuuuuuuuuuyuuunnynnnuuuuyuuuuyuuuuunnn
css-shape-outside|shape-outside|property shape-outside|nnnyyuunnnnuuuuuuuuuyuuunnynnnuuuuyuuuuyuuuuunnn
css-tab-size|tab-size|property tab-size|unuyyuunnnunnyunyuuunuuunyyynnuuuuyuuuuuunnyunnn
css-table-layout|table-layout|property table-layout|uyuyyuuyyyuuuuuuuuuuyuuuyynynnuuuuyuuuuuuuuuuyyy
css-text-align-last|text-align-last|property text-align-last|unuyyuyyyyyuuuuuuuuuyuuunnnnnuuuuuyuuuyuuuuuunnn
css-text-align|text-align|property text-align|aaayyyuayayyyyyyyuyuyaaayyyyaayyyuyyyyuyuyyyuaaa
css-text-decoration-color|text-decoration-color|property text-decoration-color|yyyyyyuayanynyyyyuyuyynyyyyynnyyyuyyyyuyuynyuyyy
css-text-decoration-line|text-decoration-line|property text-decoration-line|nyyyyuuyyyyunuuuuuuuyuuuyyyynnyyyuyuuuuyuunuuyyy
css-text-decoration-skip-ink|text-decoration-skip-ink|property text-decoration-skip-ink|nnnyyyunnnnunuyuuuyuyunnnnnnnnyyyuyuyuuyuunuunnn
css-text-decoration-style|text-decoration-style|property text-decoration-style|nyyyyuuyyyyunuuuuuuuyuuuyyyynnuuuuyuuuuyuunuuyyy
css-text-decoration-thickness|text-decoration-thickness|property text-decoration-thickness|nnnyyyunnnnynyyyyuyuynnynnnnnnyyyunnyyuyuynyunnn
css-text-decoration|text-decoration|property text-decoration|yyyyyyuayayyaayyyuyuyyynyyyyaayynuyyynuyuyaauyyy
css-text-emphasis-position|text-emphasis-position|property text-emphasis-position|nnnyyuunnnnynyuyyuuuyuuunnynnnyyyunuuuuuuynyunnn
css-text-emphasis|text-emphasis|property text-emphasis|nnnyyuunyynynyuyyuuuyuuunyyynnyyyunuuuuuuynyunnn
css-text-indent|text-indent|property text-indent|aaayyyuaaaayyyyyyuyuayyyyyyyyyyyyuyyyyuyuyyyuaaa
css-text-justify|text-justify|property text-justify|nnnnnuunanauauuuuuuuauuunnnaanuuuunuuuuuuunuunan
css-text-orientation|text-orientation|property text-orientation|nnnyyuuyyyyunuuuuuuuyuuuyyyynnyyyuyuuuuyuunuunnn
css-text-overflow|text-overflow|property text-overflow|nnnyyyuayayynyyyyuyuyynyyyyynnyyyunyyyuyuynyunnn
css-text-shadow|text-shadow|property text-shadow|yyyyyyunnnnyyyyyyuyuyyyynnnnnnyyyuyyyyuyuyyyuyyy
css-text-transform|text-transform|property text-transform|yyyyyyuyyyyyyyyyyuyuyyyyyyyyaayyyuyyyyuyuyyyuyyy
css-text-underline-offset|text-underline-offset|property text-underline-offset|nnnyyyunnnnynyyyyuyuynnynnnnnnyyyuynyyuyuynyunnn
css-text-underline-position|text-underline-position|property text-underline-position|nnnaauuyyayunuuuuuuuyuuuyanynnyyyuyuuuuyuunuunnn
css-text-wrap|text-wrap|property text-wrap|nnnyyuunnnnunuuuuuuuyuuunnnnnnuuuuyuuuuuuunuunnn
css-transform|transform|property transform|nnnyyyunnnnynyyyyuyunnnnnnnnnnyyyuyyyyuyuynyunnn
css-transition|transition|property transition|aaayyyynnnnuuuauuuyuynnnnnnnnnuynuanynuyuuuuuaaa
css-unit-calc|CSS calc() function|function calc|nnnyyyuayayynyyyyuyuynnnnnnnnnyyyuyyyyuyyynyunnn
css-unit-ch|ch unit|unit ch|nnnyyyuyyyyynyyyyuyuynnnyyyynnyyyuyyyyuyyynyunnn
css-unit-cm|cm unit|unit cm|yyyyyyuyyyyyyyyyyuyuyyyyyyyyyyyyyuyyyyuyyyyyuyyy
css-unit-em|em unit|unit em|yyyyyyuyyyyyyyyyyuyuyyyyyyyyyyyyyuyyyyuyyyyyuyyy
css-unit-ex|ex unit|unit ex|yyyyyyuyyyyyyyyyyuyuyyyyyyyyyyyyyuyyyyuyyyyyuyyy
css-unit-in|in unit|unit in|yyyyyyuyyyyyyyyyyuyuyyyyyyyyyyyyyuyyyyuyyyyyuyyy
css-unit-mm|mm unit|unit mm|yyyyyyuyyyyyyyyyyuyuyyyyyyyyyyyyyuyyyyuyyyyyuyyy
css-unit-pc|pc unit|unit pc|yyyyyyuyyyyyyyyyyuyuyyyyyyyyyyyyyuyyyyuyyyyyuyyy
css-unit-percent|% unit|unit %|yyyyyyuyyyyyyyyyyuyuyyyyyyyyyyyyyuyyyyuyyyyyuyyy
css-unit-pt|pt unit|unit pt|yyyyyyuyyyyyyyyyyuyuyyyyyyyyyyyyyuyyyyuyyyyyuyyy
css-unit-px|px unit|unit px|yyyyyyuyyyyyyyyyyuyuyyyyyyyyyyyyyuyyyyuyyyyyuyyy
css-unit-rem|rem unit|unit rem|nnnyyyuyyyyynyyyyuyuynnnyyyynnyyyuyyyyuyyynyunnn
css-unit-vh|vh unit|unit vh|yyyaynuyyyyanyyyyuyuynnnyyyynnyyyuynyyuyyanyuyyy
css-unit-vmax|vmax unit|unit vmax|nnnyyyuyyyyanyyyyuyuynnnyyyynnyyyuyyyyuyyanyunnn
css-unit-vmin|vmin unit|unit vmin|nnnyyyuyyyyanyyyyuyuynnnyyyynnyyyuynyyuyyanyunnn
css-unit-vw|vw unit|unit vw|yyyyynuyyyyynyyyyuyuynnnyyyynnyyyuyyyyuyyynyuyyy
css-user-select|user-select|property user-select|nnnayuunnnuunuuuuuuuyuuunnnnnnuuuuyuuuuuuunnunnn
css-variables|CSS Variables (Custom Properties)|function var|nnnyynunnnnynyyyyuyunnnnnnnnnnyyyuyyyyuyyynyunnn
css-vertical-align|vertical-align|property vertical-align|yyyyyyuyyyyyyyyyyuyuyyyyyyyyyyyyyuyyyyuyuyyyuyyy
css-visibility|visibility|property visibility|ynyyyyunnnnyyyyyyuyuynnnyyyynnyyyuyyyyuyuyyyuyyy
css-white-space-collapse|white-space-collapse|property white-space-collapse|nnnyyuunnnnuuuuuuuuuyuuunnnnnnuuuuyuuuuuuuuuunnn
css-white-space|white-space|property white-space|yyyyyyuayayayyyayuyuyyyyyyyynnyyyunayyuyuayyuaya
css-widows|widows|property widows|nnnyyuunnnnunuuuuuuuyuuuyyyynnuuuuyuuuuuuunuunnn
css-width|width property|property width|yyyyyyuyyyyyyyyyyuauyyyyyyyyayyyyuyyyyuyuyyyuyyy
css-word-break|word-break|property word-break|nnnaayuayaannyanyuyuynanaaaaynayauayyyuyunnyunnn
css-word-spacing|word-spacing|property word-spacing|naayyuuyyyyuauuuuuuuyuuuyyyynnyyyuyuuuuyuuauuaaa
css-word-wrap|word-wrap|property word-wrap|uuuyyuuaauuuuuuuuuuuuuuunyuynnuuuuuuuuuuuuuuuuyu
css-writing-mode|writing-mode|property writing-mode|nnnyynuayayynyyyyuyuynnnyyyynnyyyuyyyyuyuynyunnn
css-z-index|z-index|property z-index|yyyyyyunnnnyyyyyyuyunyyyyyyynnyyyuyyyyuyuyyyuyyy
html-abbr|<abbr> element|element abbr|nnnyyyyyyyyuyunuuuyununnyyyynnuyyuyuyyyyuuyuunnn
html-acronym|<acronym> element|element acronym|nnnyyuuyyyyuyuuuuuuunuuuyyyynnuuuuyyyyyyuuyuunnn
html-address|address|element address|yyyyyyuyyyynyyynnuyuynnnyyyyyyyyyuyyyyuyunyyuyyy
html-align|align attribute|attribute align|yyyyyyuyyyyyyyayyuyuyyyyyyayyyyayuyyyyuyuyyyuyyy
html-aria-describedby|aria-describedby attribute|attribute aria-describedby|nnnyynunnnnnnynnyuyunnnnyyyynnyyyuyyyyununnyunnn
html-aria-hidden|aria-hidden attribute|attribute aria-hidden|nnnyyyuyyyynnynnyuyuynnnyyyyynyyyuyyyyununnyunnn
html-aria-label|aria-label attribute|attribute aria-label|nnnyyyuyyyynnynnyuyuynnnyyyyynyyyuyyyyununnyunnn
html-aria-labelledby|aria-labelledby attribute|attribute aria-labelledby|nnnyynunnnnnnynnyuyuynnnyyynnnyyyuyyyyununnyunnn
html-aria-live|aria-live attribute|attribute aria-live|nnnyyyuyyyynnynnyuyuynnnnnnnanyyyuyyyyununnyunnn
html-audio|<audio> element|element audio|nnnyynunnnnnnnnynununnnnnnnnnnnnnuyyyyuyynnnunnn
html-background|background attribute|attribute background|yyyyyyyayayyyynyyuyuyyyyyyyyanyyyuyyyyyyuyyyuyyy
html-base|<base>|element base|aaayyauaaaannyanyununnnnnaaaynnanuynnnuyunnyuaaa
html-bdi|<bdi> element|element bdi|nnnyyyunnnnnnynnnuyunnnnnnnnnnyyyuyyyyuyunnyunnn
html-blockquote|<blockquote> element|element blockquote|yyyyyyuyyyyyyyayyuyuyyyyyyyyyyyyyuyyyyuyuyyyuyyy
html-button-reset|<button type="reset"> element|element button reset|nnnyyyuyyaynnynnauyuayyyynyynnnyyuyyayuaunnyunnn
html-button-submit|<button type="submit"> element|element button submit|yyyyyyuyyaynnynnauyuayyyynnnnnnyyuyyayuyunnyuyyn
html-cellpadding|cellpadding attribute|attribute cellpadding|yyyyyuuyyyyuyuuuuuuuyuuuyyyyyyuuuuyuuuuyuuyuuyyy
html-cellspacing|cellspacing attribute|attribute cellspacing|yyyyyuuyyyyuyuuuuuuuyuuuyyyyyyuuuuyuuuuyuuyuuyyy
html-code|<code> element|element code|yyyyyyyyyyyuyuyuuuyuynnnyyyyyyyyyuyyyyyyuuuuuyyy
html-del|<del> element|element del|yyyyyyuyyyyyyyyyyuyuyyyyyyyyyyyyyuyyyyuyuyyyuyyy
html-dfn|<dfn> element|element dfn|yyyyyuuyyyyuyuuuuuuunuuuyyyyaayyyuyyyynyuuyuuyyy
html-dialog|<dialog> element|element dialog|nnnyynuynnnnnynnnuyunnnnnnnnnnynnuyyyyuyunnyunnn
html-dir|dir attribute|attribute dir|yyyyyyuyyyaynyyyyuyuyaaayyyyaayyyuyyyyuyuynyuyyy
html-div|<div> element|element div|yyyyyyuyyyyyyyyyyuyuyyyyyyyyyyyyyuyyyyuyuyyyuyyy
html-form|<form> element|element form|yyyyynuyyaynnynnnununnnnyyaannnnnuyynyuyunnyuyyn
html-h1-h6|<h1> to <h6> elements|element h1,element h2,element h3,element h4,element h5,element h6|yyyyyyuyyyyyyyyyyuyuyyyyyyyyyyyyyuyyyyuyuyyyuyyy
html-height|height attribute|attribute height|yyyyyyuyyyyyyynyyuyuyyyyyyyyayyyyuyyyyuyuyyyuyyy
html-hidden|hidden attribute|attribute hidden|unuyyuunnnnunuuuuuuuauuunnnnnnyyyuyyyyuyuunuunnn
html-hr|<hr> element|element hr|yyyyyuuyyyyuuuuuuuuuyuuuyyyyyyyyyuyyyyuyuuuuuyyy
html-image-maps|Image maps|element map|nynyyyuyyyyyyynyyuyuyyyyyyyyynnyyuyyyyuyuyyyunyy
html-img|<img> element|element img|yyyyyyyyyyyuuuyuuuyuyuyyyyyyyyuyyuyuyyuuuuuuuyyy
html-input-checkbox|<input type="checkbox"> element|element input checkbox|yyyyyyuyyyynnynnnunuynnnyyyynnnnnuynnnuaunnyuyyy
html-input-hidden|<input type="hidden"> element|element input hidden|yyyyyyuyyyynnynnnunuynnnyyyynnnnnuynnnuaunnyuyyy
html-input-radio|<input type="radio"> element|element input radio|yyyyyyuyyyynnynnnunuynnnyyyynnnnnuynnnuaunnyuyyy
html-input-reset|<input type="reset"> element|element input reset|yyyyyyuyyaynnynnnunuynnnyyyynnnnnuynnnuaunnyuyyy
html-input-submit|<input type="submit"> element|element input submit|yyyyyyuyyaynnynnnunuynnnyynnnnnnnuynnnuyunnyuyyn
html-input-text|<input type="text"> element|element input text|yyyyyyuyyyynnynnnunuynnnnyyynnnnnunnnnuaunnyunyy
html-lang|lang attribute|attribute lang|yayyyyuyyyynnynnnuyuyynyyyyyyyyyyuyyyyuyunnyuaaa
html-link|<link> element|element link|nnnyynunnnnnnynnnununnnnnnnnyynnnunnnnununnynnnn
html-lists|<ul>, <ol> and <dl>|element ul,element ol,element dl|aaayyyuaaaayyyyyyuyuayyyaaaaaayyyuyyyyuyuyyyuaaa
html-loading-attribute|loading attribute|attribute loading|nnnyynunnnnnnyannuyuynnnnnnnnnnynuynynuyunnyunnn
html-marquee|<marquee> element|element marquee|yayyynunnnnnnynnnuaunynyyyaannyayuyyyyuyynnyuyay
html-meter|<meter> element|element meter|nnnyyyuannnnnynnnuyunnnnyyyynnyyyuyyyyuyunnyunnn
html-object|<object> element|element object|nnnyanunnnnnnannnununnnnnnnnnnnnnuannnuaunnaunnn
html-p|<p> element|element p|yyyyyyuyyyyyyyyyyuyuyyyyyyyyyyyyyuyyyyuyuyyyuyyy
html-picture|<picture> element|element picture|nnnyanunnnnnnynnnuyunnnnnnnnnnnnnuyyyyuyunnyunnn
html-popover|popover attribute|attribute popover|unnyynunnnnuuunuuuuuauuunnnnnnunnuayynunuuuuunnn
html-pre|<pre> element|element pre|yyyyyyyyyyyuyuyuuuyuyyyyyyyyyyyyyuyyyyyyuuuuuyyy
html-progress|<progress> element|element progress|nnnyyyuannnnnynnnuyunnnnnnnnnnyyyuyyyyuyunnyunnn
html-required|required attribute|attribute required|nnnyyyuannnnnynnnuaunnnnyynnnnnanuyyanuyunnyunnn
html-role|role attribute|attribute role|aaayyyuyyyynnynnnuyuynnnyyyyynyyyuyyyyuyunnyuaaa
html-rp|<rp> element|element rp|yyyyyyuannnnnynnnuyunnnnyyyynnyyyuyyyyuyunnyuyyy
html-rt|<rt> element|element rt|yyyyyyuannnnnynnnuyunnnnyyyynnyyyuyyyyuyunnyuyyy
html-ruby|<ruby> element|element ruby|yyyyyyuannnnnynnnuyunnnnyyyynnyyyuyyyyuyunnyuyyy
html-select|<select> element|element select|yyyayyuyyaynnynnyunuyyyyyyyynnyyyuynnnuaunnyuyyn
html-semantics|HTML5 semantics|element article,element aside,element details,element figcaption,element figure,element footer,element header,element main,element mark,element nav,element section,element summary,element time|nnnyyyuaaaannyanauyunaaaaaaannyyyuyyyyuyunnyunnn
html-small|<small> element|element small|yyyyyyyyyyyyyyyynuyuynnnyyyyyyyyyuyyyyyyuyyyuyyy
html-span|<span> element|element span|yyyyyyuyyyyyyyyyyuyuyyyyyyyyyyyyyuyyyyuyuyyyuyyy
html-srcset|srcset and sizes attributes|attribute srcset,attribute sizes|nnnyynunnnnnnynnnuyunnnnnnnnnnnnnuyyyyuyunnyunnn
html-strike|<strike> element|element strike|yyyyyyuayayyyynyyuyuyyyyyyyyyyyyyuyyyyuyuyyyuyyy
html-strong|<strong> element|element strong|yyyyyyuyyyyyyyyyyuyuyyyyyyyyyyyyyuyyyyuyuyyyuyyy
html-style|<style> element|element style|yyyyyyuaaanynyyyynnnyyyyyyyyaaayanynnnuyyynyyyyy
html-svg|Embedded <svg> image|element svg|nnnyanunnnnnnynnnuyunyyynnnnnnyyyuyyyyuyynnyunnn
html-table|<table> element|element table|yyyyyyuyyyyyyyyyyuyuyyyyyyyyyyyyyuyyyyuyuyyyuyyy
html-target|target attribute|attribute target|nnnaanunnnnnnannnuyunnnnaaanaannnuanynuaunnaunnn
html-textarea|<textarea> element|element textarea|yyyyyyuyyyynnynnyunuyyyynyyynnayyunnnnuaunnyunyy
html-valign|valign attribute|attribute valign|yyyyyyuyyyyyyyyyyuyuyyyyyyyyyyyyyuyyyyuyuyyyuyyy
html-video|<video> element|element video|nnnaynunnnnnnynnnununnnnnnynnnnnnuayyyuyunnyunnn
html-wbr|<wbr> element|element wbr|yyyyyyuaynynnnnnyuyunnnyyyyynnyyyuyyyyuyunnnuyyy
html-width|width attribute|attribute width|yyyyyyuyyyyyyynyyuyuyyyyyyyyayyyyuyyyyuyuyyyuyyy
image-avif|AVIF image format|image avif|yyyyynuaaaannnynnuyunyynyyyynnyyyuyyynuyunnnuyyy
image-base64|Base 64 image format|image data|yyyyyyunnnnyaynyyunuyyyyyyyyanyyyuyynyuyyyayuyyy
image-bmp|BMP image format|image bmp|yyyyyyuaayayynyyyuyuyyyyyyyyyyyyyuyyyyuyyyynuyyy
image-gif|GIF image format|image gif|yyyyyyuyyyyyyyyyyuyuyyyyyyyyayyyyuyyyyuyyyyyuyyy
image-heif|HEIF image format|image heif|nayyynuaaaannnnnnununnnnnyynnnnayunnnnunnnnnunay
image-ico|ICO image format|image ico|yyyyyyuyyyyyyyyyyuyuyyyyyyyynyyyyuynyyuyyyyyuyyy
image-jpg|JPG image format|image jpg|yyyyyyuyyyyyyyyyyuyuyyyyyyyyyyyyyuyyyyuyyyyyuyyy
image-png|PNG image format|image png|yyyyyyuyyyyyyyyyyuyuyyyyyyyyyyyyyuyyyyuyyyyyuyyy
image-svg|SVG image format|image svg|yyyyyyuananyyyyyyuyunyyyyyyyyyyyyuyyyyuyyyyyuyyy
image-tiff|TIFF image format|image tiff|nnyyynuaayannyynnuyunnnynyynnynyyunnyyunnnnyunny
image-webp|webP image format|image webp|yyyyyyuaaaayyyyyyuyuyyyyyyyynyyyyuyyyyuyyyyyuyyy
`
