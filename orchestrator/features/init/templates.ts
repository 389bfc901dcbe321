/** The files that `orchestrator init` writes. A test loads them, so they stay valid. */

export const FLEET_TEMPLATE = `# crawlfleet: every key is described in docs/configuration.md
site:
  product_url: "https://shop.example/item/{id}"   # {id} is the percent-encoded product ID
  interval: 10s                                    # start to start of two requests from one address
  # max_rate: 5/s                                  # ceiling for the whole fleet
  user_agent: "examplebot/1.0 (+https://example.com/bot)"   # who you are, with a link
  timeout: 30s
  max_page_bytes: 5MB
  mapping: mapping.yaml                            # which values become which columns
  # render: auto                                   # http | browser | auto: a browser for pages built by script
  # robots: respect                                # respect | ignore robots.txt

products:
  query: "select id from products where active = 1"   # must yield a column named id

database:
  url: "sqlite:./fleet.db"                         # or mysql://user:password@host:3306/shop

results:
  table: product_snapshots                         # made when it is missing, checked when it exists
  on_gone: keep                                    # keep | delete the row of a product that is gone

run:
  deadline: 4h                                     # --deadline wins
  # max_cost: 5.00                                 # in USD
  grace: 10m                                       # afterwards every instance powers itself off
  min_instances: 1
  max_instances: 100
  max_failed: 5%                                   # more failed products than this: exit code 12

# For runs on AWS; a dry run needs none of it. With region and bucket set, "orchestrator setup" prints the other lines.
# aws:
#   region: ap-northeast-1
#   bucket: my-bucket
#   instance_types: [t4g.nano, t3.nano]
#   instance_profile: crawlfleet-instance
#   owner: "main-1"
# server:
#   listen: "0.0.0.0:8700"
#   url: "http://10.0.0.5:8700"                    # how instances reach this server
`;

export const MAPPING_TEMPLATE = `# Which values of a page become which columns. docs/mapping.md shows every option with examples. See what a page gives:
#   orchestrator extract --mapping mapping.yaml --url https://shop.example/item/1
fields:
  # A field is a CSS selector (its trimmed text), or an object with a selector and what to do with the value.
  title: { css: "h1", required: true }             # required: a page without it counts as failed
  price: { css: ".price", attr: data-value, integer: true }
  brand: { json_ld: "brand.name" }                 # from <script type="application/ld+json">
  image: { css: "img.main", attr: src, url: true } # url: absolute
  tags:  { css: "ul.tags li", all: true }          # every match, as a JSON array

  # More options:
  # weight:   { xpath: "//th[.='Weight']/following-sibling::td", number: true }
  # cost:     { css: ".price", price: true }      # amount, and cost_currency; number: { decimal: "," } where the site has one mark
  # sku:      { css: ".codes", regex: "SKU ([A-Z0-9-]+)" }              # RE2; the first group, where there is one
  # stock:    { jsonpath: "$.product.stock", integer: true }           # where the page is JSON
  # in_stock: { json_ld: "offers.availability", boolean: true }
  # released: { css: ".date", date: { format: "d MMMM yyyy", locale: en } }
  # sizes:    { css: ".sizes", split: ",", all: true }
  # crumbs:   { css: "nav a", join: " > " }
  # name:     { css: "h2", replace: { find: "(new)", with: "" }, lower: true }
  # rating:   { css: ".stars", attr: title, number: true, default: 0 }
  # colours:                                       # a chain in your own order; nothing is implied
  #   css: "script#state"
  #   then: [{ jsonpath: "$.product.colours[*]" }, trim, all]

# The pages this mapping is for, and links to further pages of the same product (the result table has all their rows):
# url_patterns: ['/item/\\d+']
# url_parsers: ["a.next"]

# A page that holds many records, such as reviews: one row each, told apart by the field that key names.
# rows: { each: "li.review", key: user, empty: ".no-reviews" }

# Several mappings in one file: a list under \`mappings:\`; the first whose url_patterns fit the page is used.
`;
