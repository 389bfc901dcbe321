/**
 * What schema.org's types say about a node: whether it is a product, or describes the site or the page instead of what
 * the page is about. The lists of subtypes are those of schema.org 29.
 */
import { PRODUCT_TYPES, SITE_TYPES } from '../../../shared/domain/schema-types.ts';
import { own } from './nodes.ts';

const words = (...lists: string[]): ReadonlySet<string> => new Set(lists.join(' ').toLowerCase().split(' '));

const LISTS = words('ItemList BreadcrumbList OfferCatalog');

/** The other organizations: of these a page may be about one. */
const ORGANIZATIONS = words(
  'AccountingService AdultEntertainment Airline AmusementPark AnimalShelter ArchiveOrganization ArtGallery Attorney',
  'Audiology AutoBodyShop AutoDealer AutoPartsStore AutoRental AutoRepair AutoWash AutomatedTeller AutomotiveBusiness',
  'Bakery BankOrCreditUnion BarOrPub BeautySalon BedAndBreakfast BikeStore BookStore BowlingAlley Brewery',
  'CafeOrCoffeeShop Campground Casino ChildCare ClothingStore CollegeOrUniversity ComedyClub CommunityHealth',
  'ComputerStore Consortium ConvenienceStore Cooperative CovidTestingFacility DanceGroup DaySpa Dentist',
  'DepartmentStore Dermatology DiagnosticLab DietNutrition Distillery DryCleaningOrLaundry EducationalOrganization',
  'Electrician ElectronicsStore ElementarySchool Emergency EmergencyService EmploymentAgency EntertainmentBusiness',
  'ExerciseGym FastFoodRestaurant FinancialService FireStation Florist FoodEstablishment FundingAgency FundingScheme',
  'FurnitureStore GardenStore GasStation GeneralContractor Geriatric GolfCourse GovernmentOffice',
  'GovernmentOrganization GroceryStore Gynecologic HVACBusiness HairSalon HardwareStore HealthAndBeautyBusiness',
  'HealthClub HighSchool HobbyShop HomeAndConstructionBusiness HomeGoodsStore Hospital Hostel Hotel HousePainter',
  'IceCreamShop IndividualPhysician InsuranceAgency InternetCafe JewelryStore LegalService Library LibrarySystem',
  'LiquorStore Locksmith LodgingBusiness MedicalBusiness MedicalClinic MedicalOrganization MensClothingStore',
  'MiddleSchool Midwifery MobilePhoneStore Motel MotorcycleDealer MotorcycleRepair MovieRentalStore MovieTheater',
  'MovingCompany MusicGroup MusicStore NGO NailSalon NewsMediaOrganization NightClub Notary Nursing Obstetric',
  'OfficeEquipmentStore Oncologic Ophthalmology Optician Optometric Otolaryngologic OutletStore PawnShop Pediatric',
  'PerformingGroup PetStore Pharmacy Physician PhysiciansOffice Physiotherapy PlasticSurgery Plumber Podiatric',
  'PoliceStation PoliticalParty PostOffice Preschool PrimaryCare ProfessionalService Project Psychiatric PublicHealth',
  'PublicSwimmingPool RadioStation RealEstateAgent RecyclingCenter ResearchOrganization ResearchProject Resort',
  'Restaurant RoofingContractor School SearchRescueOrganization SelfStorage ShoeStore ShoppingCenter SkiResort',
  'SportingGoodsStore SportsActivityLocation SportsClub SportsOrganization SportsTeam StadiumOrArena TattooParlor',
  'TelevisionStation TennisComplex TheaterGroup TireShop TouristInformationCenter ToyStore TravelAgency',
  'VacationRental VeterinaryCare WholesaleStore Winery WorkersUnion',
);

/** The types of a node in lower case and without their vocabulary: `product` for `http://schema.org/Product`. */
export function typesOf(node: object): string[] {
  const types = own(node, '@type');
  if (typeof types === 'string') return [bareName(types)];
  return Array.isArray(types) ? types.filter((type) => typeof type === 'string').map(bareName) : [];
}

/** The end of a type's name or URL, in lower case. */
export function bareName(type: string): string {
  const name = type.trim().replace(/\/$/, '');
  return name.slice(Math.max(name.lastIndexOf('/'), name.lastIndexOf('#'), name.lastIndexOf(':')) + 1).toLowerCase();
}

export const isProductType = (types: readonly string[]): boolean => types.some((type) => PRODUCT_TYPES.has(type));
export const isListType = (types: readonly string[]): boolean => types.some((type) => LISTS.has(type));

/** Whether the node gives no values unless a mapping names its type; `isPage`: its URL is that of the page. */
export function isSiteType(types: readonly string[], isPage: () => boolean): boolean {
  if (types.some((type) => SITE_TYPES.has(type))) return true;
  return types.some((type) => ORGANIZATIONS.has(type)) && !isPage();
}
