/** Types of schema.org 29, in lower case, that say what a node of a page is about. */

const words = (...lists: string[]): ReadonlySet<string> => new Set(lists.join(' ').toLowerCase().split(' '));

/** Product and its subtypes. */
export const PRODUCT_TYPES = words(
  'Product DietarySupplement Drug IndividualProduct ProductCollection ProductGroup ProductModel SomeProducts',
  'Vehicle BusOrCoach Car Motorcycle MotorizedBicycle',
);

/** Those of the site or the page; also the names under which a shop describes itself on all of its pages. */
export const SITE_TYPES = words(
  'Organization Corporation LocalBusiness OnlineBusiness OnlineMarketplace OnlineStore Store Person ImageObject',
  'WebSite SearchAction WebPage AboutPage CheckoutPage CollectionPage ContactPage FAQPage ItemPage MediaGallery',
  'ImageGallery VideoGallery MedicalWebPage ProfilePage QAPage SearchResultsPage WebPageElement SiteNavigationElement',
  'WPAdBlock WPFooter WPHeader WPSideBar ItemList BreadcrumbList OfferCatalog',
);
